"""A checkpoint that was refused: what it holds against what the model has, read from the call that raised."""

import ast
import re
from collections.abc import Mapping
from dataclasses import replace
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from sleuth.adapters.torch.failures.source import Function, functions
from sleuth.adapters.torch.place import TORCH
from sleuth.core.observation import Entry, Misfit
from sleuth.core.runtime.place import innermost

LISTED = re.compile(r'"([^"]+)"')
RESHAPED = re.compile(
    r"size mismatch for (\S+): copying a param with shape torch\.Size\(\[([\d, ]*)\]\) from checkpoint, "
    r"the shape in current model is torch\.Size\(\[([\d, ]*)\]\)"
)
# Under which people keep the model's state beside the epoch and the optimiser's.
LOADING_FILES = f"{TORCH}/serialization.py"
UNREADABLE = (
    (r"Weights only load failed", "more than weights: a whole model or other objects",
     "save the state alone, torch.save(model.state_dict(), path), and load that; if you trust the file: torch.load(path, "
     "weights_only=False)"),
    (r"CUDA device but torch\.cuda\.is_available\(\) is False", "tensors of a GPU, and there is none here",
     "bring them to the CPU as they are read: torch.load(path, map_location=\"cpu\")"),
    (r"CUDA device (\d+) but torch\.cuda\.device_count\(\) is (\d+)", "tensors of a GPU that is not here",
     "say where they are to go: torch.load(path, map_location=device)"),
    (r"failed reading zip archive|failed finding central directory|file in archive is not in a subdirectory|invalid magic number",
     "a file that is not whole: it was cut off or changed after it was saved",
     "save it again, first under another name and then os.replace(temporary, path): a run that is killed leaves the old one"),
    (r"Can't get attribute '(\w+)' on <module", "a whole model whose class is not known here",
     "import the class before torch.load, or save the state alone: torch.save(model.state_dict(), path)"),
)  # fmt: skip


def read_misfit(error: BaseException) -> Misfit | None:
    """None where no checkpoint was being loaded."""
    frame = _frame(error, ("load_state_dict",))
    owner = None if frame is None else frame.f_locals.get("self")
    location = innermost(error.__traceback__, (TORCH,))
    misfit = None
    if isinstance(owner, Optimizer) and isinstance(error, ValueError):
        misfit = _optimiser(error, owner, frame)
    elif isinstance(owner, nn.Module) and frame is not None:
        misfit = _module(error, owner, frame)
    elif "Error(s) in loading state_dict for" in str(error):
        misfit = _from_message(str(error))
    elif _frame(error, ("load", "torch_load"), LOADING_FILES) is not None:
        misfit = _unreadable(error)
    return None if misfit is None else replace(misfit, **_call(error), location=location)


def _module(error: BaseException, model: nn.Module, frame: FrameType) -> Misfit | None:
    given, into = frame.f_locals.get("state_dict"), type(model).__name__
    if isinstance(error, TypeError) and not isinstance(given, Mapping):
        return Misfit("object", into, got=f"a {type(given).__name__}")
    if "Error(s) in loading state_dict" not in str(error) or not isinstance(given, Mapping):
        return None
    own = {name: tuple(t.shape) for name, t in model.state_dict().items() if isinstance(t, torch.Tensor)}
    held = {str(name): _shape(thing) for name, thing in given.items()}
    key = next((str(k) for k, v in given.items() if isinstance(v, Mapping) and _overlaps(v, own)), None)
    if key is not None:
        return Misfit("nested", into, key=key, got=", ".join(map(str, list(given)[:6])))
    both = [name for name in own if name in held]
    reshaped = [name for name in both if held[name] is not None and held[name] != own[name]]
    # A message that names no tensor of these came from a load of the user's own.
    told = _from_message(str(error))
    return Misfit(
        "names",
        into,
        missing=tuple(Entry(n, own.get(n)) for n in (e.name for e in told.missing)),
        unexpected=tuple(Entry(n, held.get(n)) for n in (e.name for e in told.unexpected)),
        reshaped=tuple((Entry(n, held[n]), Entry(n, own[n])) for n in reshaped) or told.reshaped,
        fitting=len(both) - len(reshaped),
    )


def _from_message(message: str) -> Misfit:
    into = re.search(r"loading state_dict for (\w+)", message)
    listed: dict[str, tuple[Entry, ...]] = {"Missing": (), "Unexpected": ()}
    for line in message.splitlines():
        for word in listed:
            if line.strip().startswith(f"{word} key(s) in state_dict"):
                listed[word] = tuple(Entry(name) for name in LISTED.findall(line))
    pairs = [(name, _sizes(one), _sizes(other)) for name, one, other in RESHAPED.findall(message)]
    return Misfit(
        "names",
        into[1] if into else "the model",
        missing=listed["Missing"],
        unexpected=listed["Unexpected"],
        reshaped=tuple((Entry(name, one), Entry(name, other)) for name, one, other in pairs),
    )


def _optimiser(error: BaseException, optimiser: Optimizer, frame: FrameType | None) -> Misfit | None:
    if "loaded state dict" not in str(error):
        return None
    given = frame.f_locals.get("state_dict") if frame is not None else None
    saved = [len(g["params"]) for g in given["param_groups"]] if isinstance(given, Mapping) else []
    own = [len(g["params"]) for g in optimiser.param_groups]
    got = f"groups of {_list(saved)} parameters in the checkpoint, of {_list(own)} here"
    return Misfit("optimiser", type(optimiser).__name__, got=got)


def _unreadable(error: BaseException) -> Misfit | None:
    if isinstance(error, EOFError):
        return Misfit("unreadable", "torch.load", got="a file that is empty or ends too soon", advice=UNREADABLE[3][2])
    for pattern, got, advice in UNREADABLE:
        if re.search(pattern, str(error)):
            return Misfit("unreadable", "torch.load", got=got, advice=advice)
    return None


def _call(error: BaseException) -> dict[str, Any]:
    """What the user's line calls the model and the state."""
    mine: Function | None = next(iter(functions(error.__traceback__)), None)
    for node in mine.nodes if mine is not None else ():
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr="load_state_dict"), args=args):
                if mine is not None and node.lineno <= mine.line <= (node.end_lineno or node.lineno):
                    return {"owner": ast.unparse(owner)} | ({"state": ast.unparse(args[0])} if args else {})
    return {}


def _frame(error: BaseException, names: tuple[str, ...], file: str = TORCH) -> FrameType | None:
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_name in names and code.co_filename.replace("\\", "/").startswith(file.replace("\\", "/")):
            return trace.tb_frame
        trace = trace.tb_next
    return None


def _overlaps(inner: Mapping[Any, Any], own: Mapping[str, Any]) -> bool:
    """Would it fit, at least by half of its names?"""
    endings = {name.rpartition(".")[2] for name in own}
    same = sum(str(k) in own or str(k).rpartition(".")[2] in endings for k in inner)
    return bool(inner) and 2 * same >= len(inner) and all(isinstance(v, torch.Tensor) for v in inner.values())


def _shape(thing: Any) -> tuple[int, ...] | None:
    return tuple(thing.shape) if isinstance(thing, torch.Tensor) else None


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split(",") if n.strip())


def _list(counts: list[int]) -> str:
    return " and ".join(map(str, counts[:4])) or "no"
