"""A scene: everything that a step needs to be done again elsewhere, copied at one moment."""

import platform
import random
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence
from torch.optim import Optimizer

from sleuth.adapters.torch.watching.step_memory import Forward, LossHeard, Memory, Other, View, outputs_of
from sleuth.core.contract.guard import Draft
from sleuth.core.contract.scene import StoredArray
from sleuth.core.location import Location
from sleuth.core.runtime.tree import leaves

SCHEMA = 1
# To compare with when the step is done again; larger outputs are not kept.
MOST_OUTPUT = 64 << 20


@dataclass(frozen=True)
class About:
    """What the watch knows of the step."""

    name: str
    step: int
    message: str
    loss: float | None
    recent: list[dict[str, Any]]
    lines: Mapping[str, Location | None]
    samples: Mapping[str, Any] | None
    found: Mapping[str, Any]
    others: list[torch.Tensor]  # of the batch, and not given to the model: targets, most likely
    outputs: list[Any]  # of the model's calls, where they were done again


class Kept:
    """Tensors by name, copied. One that is given twice is copied once."""

    def __init__(self) -> None:
        self.tensors: dict[str, torch.Tensor] = {}
        self._names: dict[tuple[Any, ...], str] = {}

    def keep(self, name: str, tensor: torch.Tensor) -> str:
        dense = tensor.detach()
        if dense.is_sparse or dense.is_quantized:
            dense = dense.to_dense() if dense.is_sparse else dense.dequantize()
        key = (dense.data_ptr(), tuple(dense.shape), dense.stride(), dense.dtype)
        if not dense.numel() or key not in self._names:
            self._names[key] = name
            self.tensors[name] = dense.to("cpu", copy=True).contiguous()
        return self._names[key]

    @property
    def size(self) -> int:
        return sum(map(size_of, self.tensors.values()))


def size_of(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def draft(model: nn.Module, optimisers: list[Optimizer], memory: Memory, room: int, about: About) -> Draft:
    kept, left_out = Kept(), []
    facts: dict[str, Any] = {
        "schema": SCHEMA,
        "framework": "torch",
        "name": about.name,
        "step": about.step,
        "message": about.message,
        "loss": _number(about.loss),
        "root": memory.root if isinstance(memory.root, int) else form(memory.root, "", kept),
        "samples": about.samples,
        **about.found,
        "steps": about.recent,
        "lines": {kind: _place(line) for kind, line in about.lines.items()},
        "model": {"class": type(model).__name__, "eval": [path for path, m in model.named_modules() if not m.training]},
        "versions": {"sleuth": version("sleuth"), "torch": torch.__version__, "python": platform.python_version()},
    }
    with torch.no_grad():
        facts["calls"] = [_call(number, forward, kept, about.outputs) for number, forward in enumerate(memory.forwards)]
        facts["losses"] = [_loss(number, heard, kept) for number, heard in enumerate(memory.losses)]
        facts["others"] = [form(tensor, f"batch.others.{i}", kept) for i, tensor in enumerate(about.others)]
        if kept.size > room:
            kept, facts["calls"], facts["losses"], facts["others"] = Kept(), [], [], []
            left_out.append("the batch")
        facts["random"] = _random(memory, kept)
        weights = [("parameters", n, t) for n, t in model.named_parameters()] + [
            ("buffers", n, t) for n, t in model.named_buffers()
        ]
        if kept.size + sum(size_of(t) for _, _, t in weights) <= room:
            facts["weights"] = [kept.keep(f"{kind}.{name}", tensor) for kind, name, tensor in weights]
        else:
            left_out.append("the weights")
        state = sum(size_of(t) for o in optimisers for s in o.state.values() for t in s.values() if isinstance(t, torch.Tensor))
        if not left_out and kept.size + state <= room:
            facts["optimisers"] = [_optimiser(number, optimiser, model, kept) for number, optimiser in enumerate(optimisers)]
        else:
            left_out.append("the state of the optimiser")
    facts["left_out"] = [f"{what}: there was no room for it" for what in left_out]
    return Draft(facts, lambda: {name: stored(t) for name, t in kept.tensors.items()}, kept.size)


def stored(tensor: torch.Tensor) -> StoredArray:
    data = tensor.reshape(-1).view(torch.uint8).numpy() if tensor.numel() else np.zeros(0, np.uint8)
    return StoredArray(str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), data)


def form(thing: Any, name: str, kept: Kept) -> Any:
    """A tree as JSON: tensors by name, plain values as they are, anything else as its text."""
    match thing:
        case torch.Tensor():
            return {".tensor": kept.keep(name, thing)}
        case np.ndarray() if thing.dtype.kind in "biuf":
            return {".array": kept.keep(name, torch.from_numpy(np.ascontiguousarray(thing)))}
        case None | bool() | int() | str():
            return thing
        case float():
            return {".float": repr(thing)}
        case View():
            return {".output": {**thing._asdict(), "size": thing.size and list(thing.size), "stride": list(thing.stride)}}
        case Other():
            return {".made": list(thing.shape)}
        case torch.dtype():
            return {".dtype": str(thing).removeprefix("torch.")}
        case PackedSequence():
            return {".packed": [form(part, f"{name}.{key}", kept) for key, part in zip(thing._fields, thing, strict=True)]}
        case Mapping():
            return {".map": [[form(k, "", kept), form(v, f"{name}.{k}", kept)] for k, v in thing.items()]}
        case list():
            return [form(part, f"{name}.{i}", kept) for i, part in enumerate(thing)]
        case tuple() if not hasattr(thing, "_fields"):
            return {".tuple": [form(part, f"{name}.{i}", kept) for i, part in enumerate(thing)]}
    return {".text": f"{type(thing).__name__}"}


def _call(number: int, forward: Forward, kept: Kept, again: list[Any]) -> dict[str, Any]:
    """What the call returned is kept where somebody still holds it, or where it was done again."""
    known = dict(leaves(again[number], lambda t: isinstance(t, torch.Tensor))) if number < len(again) else {}
    known |= dict(outputs_of(forward))
    outputs = [(path, t) for path, t in known.items() if size_of(t) <= MOST_OUTPUT]
    return {
        "args": form(list(forward.args), f"batch.{number}.args", kept),
        "kwargs": form(dict(forward.kwargs), f"batch.{number}.kwargs", kept),
        "changed": not forward.unchanged,
        "autocast": None if forward.autocast is None else [forward.autocast[0], str(forward.autocast[1]).removeprefix("torch.")],
        "outputs": {path: kept.keep(f"output.{number}.{path}", t) for path, t in outputs},
    }


def _loss(number: int, heard: LossHeard, kept: Kept) -> dict[str, Any]:
    returned = heard.returned()
    value = returned.detach() if returned is not None else None
    return {
        "name": heard.name,
        "args": form(list(heard.args), f"loss.{number}.args", kept),
        "kwargs": form(heard.kwargs, f"loss.{number}.kwargs", kept),
        "returned": _number(float(value)) if value is not None and value.numel() == 1 else None,
    }


def _random(memory: Memory, kept: Kept) -> dict[str, Any]:
    """torch's as it was before each call of the model; the others as they are now."""
    kind, keys, place, has_gauss, gauss = np.random.get_state()
    version, words, second = random.getstate()
    now = torch.get_rng_state()
    states = [now if f.random is None else f.random for f in memory.forwards] or [now]
    return {
        "torch": [kept.keep(f"random.{number}", state) for number, state in enumerate(states)],
        "numpy": [kind, np.asarray(keys).tolist(), place, has_gauss, gauss],
        "python": [version, list(words), second],
    }


def _optimiser(number: int, optimiser: Optimizer, model: nn.Module, kept: Kept) -> dict[str, Any]:
    names = {id(p): name for name, p in model.named_parameters()}
    groups = []
    for group in optimiser.param_groups:
        options = {k: form(v, f"optimiser.{number}.{k}", kept) for k, v in group.items() if k != "params"}
        groups.append({**options, "params": [names.get(id(p)) for p in group["params"]]})
    state = {}
    for i, parameter in enumerate(p for group in optimiser.param_groups for p in group["params"]):
        if parameter in optimiser.state:
            name = f"optimiser.{number}.{names.get(id(parameter), i)}"
            state[names.get(id(parameter), str(i))] = {
                key: form(value, f"{name}.{key}", kept) for key, value in optimiser.state[parameter].items()
            }
    return {"class": type(optimiser).__name__, "groups": groups, "state": state}


def _number(value: float | None) -> Any:
    """JSON has no NaN: its text is kept, and every bit of a finite one."""
    return None if value is None else repr(value)


def _place(line: Location | None) -> dict[str, Any] | None:
    return None if line is None else {"file": line.short_file, "line": line.line, "text": line.text}
