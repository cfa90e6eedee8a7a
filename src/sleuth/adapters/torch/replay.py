"""Does a kept step again: weights, batch and random state of a scene go into a model that was built anew."""

import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from sleuth.adapters.torch.tracing import Trace, call
from sleuth.adapters.torch.watching.patches import LOSSES
from sleuth.core.contract.scene import Operation, Replayed, Scene, StoredArray
from sleuth.core.errors import UnusableInput
from sleuth.core.runtime.tree import leaves
from sleuth.core.subject import Subject
from sleuth.core.words import kind_of

# Sums in another order, on another machine: values may differ by so many units in the last place, relative to the largest.
ROUNDING = 256


def replay(subject: Subject, scene: Scene) -> Replayed:
    if not isinstance(subject.model, nn.Module):
        raise UnusableInput(f"a torch model is needed to do this scene again, not {kind_of(subject.model)}.")
    if not scene.facts["calls"] and subject.step is None:
        raise UnusableInput(
            f"scene {scene.number} holds no batch ({', '.join(scene.facts.get('left_out', ())) or 'none was heard'})."
        )
    step = Step(subject, scene)
    with _alone():
        step.prepare()
        step.run()
    return step.replayed()


class Step:
    def __init__(self, subject: Subject, scene: Scene) -> None:
        self.subject, self.scene = subject, scene
        self.model: nn.Module = subject.model
        self.trace = Trace(self.model)
        self.notes: list[str] = list(scene.facts.get("left_out", ()))
        self.compared: list[tuple[str, str]] = []  # verdict, in words
        self.loss: torch.Tensor | None = None
        self.gradients: dict[str, tuple[int, int]] = {}
        self.outputs: list[Any] = []

    def prepare(self) -> None:
        facts = self.scene.facts
        load_weights(self.model, self.scene, self.notes)
        self.model.train()
        for path, module in self.model.named_modules():
            module.training = path not in set(facts["model"]["eval"])
        if any(c["changed"] for c in facts["calls"]):
            self.notes.append("an input was changed in place after the model was called: it is kept as it was later")

    def run(self) -> None:
        for number, described in enumerate(self.scene.facts["calls"]):
            args, kwargs = (rebuilt(described[part], self.scene, []) for part in ("args", "kwargs"))
            self._random(number)
            with torch.enable_grad(), _autocast(described["autocast"]), self.trace.listener.listening():
                self.outputs.append(call(self.model, tuple(args), kwargs))
        self.loss = self._loss()
        self._compare()
        if self.loss is not None and self.loss.requires_grad:
            self._backward(self.loss)

    def _random(self, number: int) -> None:
        states = self.scene.facts["random"]["torch"]
        if number < len(states):
            torch.set_rng_state(tensor_of(self.scene.arrays[states[number]]))

    def _loss(self) -> torch.Tensor | None:
        heard, root = self.scene.facts["losses"], self.scene.facts.get("root")
        if self.subject.loss is not None:
            target = self._target()
            if target is not None:
                with torch.enable_grad(), self.trace.listener.listening():
                    return self.subject.loss(self.outputs[-1], target)
            self.notes.append("your loss was not called: the scene holds no target for it")
        if isinstance(root, dict):
            return rebuilt(root, self.scene, self.outputs)
        heard = heard if root is None else [heard[root]]
        if not heard:
            self.notes.append("no loss of torch.nn.functional was heard: return a sleuth.Subject with loss= to do it again too")
            return None
        if any(".made" in str(h) for h in heard):
            self.notes.append(f"something was computed between the model and {heard[0]['name']}, so the loss is not done again")
            return None
        total: Any = 0
        for one in heard:
            args, kwargs = (rebuilt(one[part], self.scene, self.outputs) for part in ("args", "kwargs"))
            with torch.enable_grad(), self.trace.listener.listening():
                value = _loss_function(one["name"])(*args, **kwargs)
            self._compare_numbers(f"what {one['name']} returned", float(value.detach().mean()), one["returned"])
            total = total + (value if value.dim() == 0 else value.mean())
        if root is None:
            self.notes.append("your loop did more with the loss than this: its value is not compared")
        return total if isinstance(total, torch.Tensor) else None

    def _target(self) -> Any:
        for one in self.scene.facts["losses"]:
            for thing in (*one["args"], *(pair[1] for pair in one["kwargs"][".map"])):
                if isinstance(thing, dict) and ".tensor" in thing:
                    return rebuilt(thing, self.scene, self.outputs)
        others = self.scene.facts.get("others") or []
        return rebuilt(others[-1], self.scene, self.outputs) if others else None

    def _backward(self, loss: torch.Tensor) -> None:
        named = [(n, p) for n, p in self.model.named_parameters() if p.requires_grad]
        found = self.trace.gradients(loss if loss.dim() == 0 else loss.mean(), [p for _, p in named])
        for (name, _), gradient in zip(named, found, strict=True):
            if gradient is not None and not bool(torch.isfinite(gradient).all()):
                self.gradients[name] = int(torch.isnan(gradient).sum()), int(torch.isinf(gradient).sum())

    def _compare(self) -> None:
        facts = self.scene.facts
        for number, described in enumerate(facts["calls"]):
            again = dict(leaves(self.outputs[number], lambda t: isinstance(t, torch.Tensor)))
            for path, name in described["outputs"].items():
                what = f"the model's output{f' {path}' if path else ''}"
                verdict = compared(again.get(path), tensor_of(self.scene.arrays[name]))
                self.compared.append((verdict, f"{what}: {verdict}"))
        comparable = facts.get("root") is not None or self.subject.loss is not None
        if self.loss is not None and comparable and self.loss.numel() == 1:
            self._compare_numbers("the loss", float(self.loss.detach()), facts["loss"])

    def _compare_numbers(self, what: str, now: float, then: str | None) -> None:
        if then is None:
            return
        verdict = compared(torch.tensor(now, dtype=torch.float32), torch.tensor(float(then), dtype=torch.float32))
        self.compared.append((verdict, f"{what}: {verdict} ({now:g}, then {float(then):g})"))

    def replayed(self) -> Replayed:
        verdicts = [verdict for verdict, _ in self.compared]
        verdict = next((v for v in ("different", "close", "same") if v in verdicts), "unknown")
        recorded = self.scene.facts["loss"]
        return Replayed(
            self.scene,
            verdict,
            tuple(text for _, text in self.compared),
            float(self.loss.detach()) if self.loss is not None and self.loss.numel() == 1 else None,
            None if recorded is None else float(recorded),
            tuple(self.trace.operations),
            self._origin(),
            self.gradients,
            tuple(self.notes),
        )

    def _origin(self) -> Operation | None:
        guilty = self.trace.guilty([self.outputs, self.loss])
        if guilty is not None:
            return self.trace.described(guilty[0])
        return self.trace.born_backward[1] if self.trace.born_backward is not None else None


def load_weights(model: nn.Module, scene: Scene, notes: list[str]) -> None:
    """Every parameter and buffer of the model gets the scene's values; names and shapes must be the same."""
    if "weights" not in scene.facts:
        notes.append("the weights are those of the model as it was built")
        return
    own = {f"parameters.{n}": t for n, t in model.named_parameters()} | {f"buffers.{n}": t for n, t in model.named_buffers()}
    kept = {name: scene.arrays[name] for name in scene.arrays if name.startswith(("parameters.", "buffers."))}
    missing, strange = sorted(set(kept) - set(own)), sorted(set(own) - set(kept))
    wrong = [n for n in own if n in kept and tuple(own[n].shape) != tuple(kept[n].shape)]
    if missing or strange or wrong:
        raise UnusableInput(_other_model(missing, strange, wrong, own, kept))
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(tensor_of(kept[name]))


def _other_model(
    missing: list[str], strange: list[str], wrong: list[str], own: Mapping[str, Any], kept: Mapping[str, Any]
) -> str:
    def named(names: list[str]) -> str:
        return ", ".join(n.split(".", 1)[1] for n in names[:3]) + (" …" if len(names) > 3 else "")

    said = [f"it lacks {named(missing)}"] if missing else []
    said += [f"the scene has no {named(strange)}"] if strange else []
    said += (
        [f"{named(wrong)} has another shape: {tuple(own[wrong[0]].shape)}, in the scene {tuple(kept[wrong[0]].shape)}"]
        if wrong
        else []
    )
    return f"this is another model than the one of the scene: {'; '.join(said)}."


def rebuilt(form: Any, scene: Scene, outputs: list[Any]) -> Any:
    """The tree that a scene describes."""
    match form:
        case list():
            return [rebuilt(part, scene, outputs) for part in form]
        case {".tensor": name}:
            return tensor_of(scene.arrays[name])
        case {".array": name}:
            return tensor_of(scene.arrays[name]).numpy()
        case {".float": text}:
            return float(text)
        case {".tuple": parts}:
            return tuple(rebuilt(part, scene, outputs) for part in parts)
        case {".map": pairs}:
            return {rebuilt(k, scene, outputs): rebuilt(v, scene, outputs) for k, v in pairs}
        case {".dtype": name}:
            return _dtype(name)
        case {".packed": parts}:
            return PackedSequence(*(rebuilt(part, scene, outputs) for part in parts))
        case {".output": view}:
            output = dict(leaves(outputs[view["call"]], lambda t: isinstance(t, torch.Tensor)))[view["path"]]
            if view["size"] is None:
                return output
            return output.as_strided(view["size"], view["stride"], output.storage_offset() + view["offset"])
        case {".text": kind}:
            raise UnusableInput(f"the model was given {kind}, which a scene cannot keep: this step cannot be done again.")
    return form


def tensor_of(array: StoredArray) -> torch.Tensor:
    dtype = _dtype(array.dtype)
    if not math.prod(array.shape):
        return torch.zeros(array.shape, dtype=dtype)
    return torch.frombuffer(bytearray(array.data), dtype=dtype).reshape(array.shape)


def _dtype(name: str) -> torch.dtype:
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise UnusableInput(f"this torch has no dtype {name}.")
    return dtype


def _loss_function(name: str) -> Any:
    """A scene may come from anybody: nothing else is called by its name."""
    if name not in LOSSES:
        raise UnusableInput(f"torch.nn.functional has no loss {name!r}, which the scene names.")
    return getattr(functional, name)


def compared(now: torch.Tensor | None, then: torch.Tensor) -> str:
    if now is None or now.shape != then.shape:
        return "different"
    now, then = now.detach().cpu(), then.cpu()
    if not then.is_floating_point():
        return "same" if torch.equal(now, then) else "different"
    if bool(((now == then) | (torch.isnan(now) & torch.isnan(then))).all()):
        return "same"
    sound = torch.isfinite(then)
    alike = bool((torch.isfinite(now) == sound).all()) and bool((torch.isnan(now) == torch.isnan(then)).all())
    limit = ROUNDING * torch.finfo(then.dtype).eps * float(then[sound].abs().max()) if bool(sound.any()) else 0.0
    return "close" if alike and bool(((now[sound] - then[sound]).abs() <= limit).all()) else "different"


def _autocast(described: list[str] | None) -> AbstractContextManager[Any]:
    return nullcontext() if described is None else torch.autocast(described[0], _dtype(described[1]))


@contextmanager
def _alone() -> Iterator[None]:
    with warnings.catch_warnings(), torch.random.fork_rng():
        warnings.simplefilter("ignore")
        yield
