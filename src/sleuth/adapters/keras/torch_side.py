"""Gradients, steps and the graph of a loss on Keras' torch backend."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from sleuth.adapters.keras.pass_listener import Hearing
from sleuth.adapters.keras.sides import Meeting, Side, without_warnings
from sleuth.adapters.keras.torch_ops import OpListener
from sleuth.adapters.torch.cuts import CutNotes, cuts_of
from sleuth.adapters.torch.loss_calls import LossNotes
from sleuth.core.contract.workload import Hear, Heard
from sleuth.core.errors import Unsupported
from sleuth.core.subject import Parts
from sleuth.core.trial import Connection

if TYPE_CHECKING:
    from sleuth.adapters.keras.bench import KerasBench


class TorchSide(Side):
    def without_gradients(self, compute: Callable[[Any], Any], given: Any, key: Any) -> Any:
        with torch.no_grad():
            return compute(given)

    def gradients(self, compute: Callable[[Any], Any], given: Any, key: Any) -> tuple[Any, list[Any]]:
        variables = self.model.trainable_variables
        self.clear()
        loss = compute(given)
        loss.backward()
        found = [v.value.grad for v in variables]
        self.clear()
        return loss.detach(), found

    def meeting(self, compute: Callable[[Any, Any], Any], output: Any, target: Any) -> Meeting | None:
        listener = OpListener(Hearing(self.model))
        notes = LossNotes(listener)
        # Copies: a model may hand its input on as its output.
        given, wanted = output.detach().clone().requires_grad_(output.is_floating_point()), target.detach().clone()
        notes.mark(given, "output")
        notes.mark(wanted, "target")
        with torch.enable_grad(), listener.listening():
            loss = compute(given, wanted)
        if notes.blown is None:
            return None
        made, location, sides = notes.blown
        if not _counts(loss, made):
            return None
        return Meeting(tuple(sides["output"].shape), tuple(sides["target"].shape), tuple(made.shape), location)

    def connection(self, bench: "KerasBench", batch: Parts) -> Connection:
        """One step op by op, and its backward."""
        native = bench.native(batch)
        hearing = Hearing(bench.model)
        notes = CutNotes(OpListener(hearing), bench.model)
        values = {path: bench.parameter(path) for path in bench.paths()}
        for value in values.values():
            value.grad = None
        with without_warnings(), torch.enable_grad(), hearing.listening(), notes.listening():
            loss = bench.compute(native)
        error = None if loss.requires_grad else "nothing that the loss was computed from needs a gradient"
        if error is None:
            loss.backward()
        trail = notes.trail(loss)
        flat = set().union(*(notes.found[i].roots for i in trail.cuts if notes.found[i].flat))
        missing = {id(p): path for path, p in values.items() if p.grad is None or (id(p) in flat and not p.grad.any())}
        unused = {path.rpartition(".")[0] for i, path in missing.items() if i not in notes.touched}
        for value in values.values():
            value.grad = None
        return Connection(
            parameters=len(values),
            without_gradient=tuple(missing.values()),
            cuts=tuple(cuts_of(notes, trail, missing)),
            unused_layers=tuple(sorted(unused)),
            error=error,
            custom=tuple(sorted(set(notes.custom))),
        )

    @contextmanager
    def unrecorded(self) -> Iterator[None]:
        with torch.no_grad():
            yield

    def clear(self) -> None:
        for variable in self.model.trainable_variables:
            variable.value.grad = None

    def apply(self, optimiser: Any, gradients: Sequence[Any]) -> None:
        if all(gradient is None for gradient in gradients):
            raise Unsupported("the loss reaches no variable that is trained, so there is nothing to step")
        with torch.no_grad():
            optimiser.apply(list(gradients), list(self.model.trainable_variables))

    def gradient_by(self, compute: Callable[[Any], Any], given: Any) -> Any:
        array = given.detach().clone().requires_grad_(True)
        (found,) = torch.autograd.grad(compute(array), array)
        return found

    def told(self, heard: Heard, array: Any, value: Hear, gradient: Hear | None) -> Any:
        value(heard, array.detach())
        if gradient is not None and array.requires_grad:
            array.register_hook(lambda slope: gradient(heard, slope.detach()))
        return array


def _counts(loss: torch.Tensor, made: torch.Tensor) -> bool:
    """In the loss: a metric beside it may compare as it likes."""
    if not loss.requires_grad or not made.requires_grad:
        return False
    return torch.autograd.grad(loss.sum(), made, allow_unused=True)[0] is not None
