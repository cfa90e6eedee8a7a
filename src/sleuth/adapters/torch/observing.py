"""Everything that listens to one forward and loss, and what it heard."""

from collections.abc import Iterator
from typing import Any

from torch import nn

from sleuth.adapters.common.activity import frame_of, units_of
from sleuth.adapters.torch.loss_calls import Ask, LossNotes
from sleuth.adapters.torch.origin import OriginNotes
from sleuth.adapters.torch.pass_listener import Activity, ActivityNotes, Listener
from sleuth.core.observation import Observation


class Hearing:
    def __init__(self, model: nn.Module, loss_name: str) -> None:
        self.listener = Listener(model)
        self.phase = "forward"
        self._loss_name = loss_name
        self._output: Any = None
        self._origins = OriginNotes(self.listener)
        self._losses = LossNotes(self.listener)
        self._activity = ActivityNotes(self.listener, lambda tensor: tensor.detach().float().cpu().numpy().copy())
        self.listener.on_layer.append(self._leave)

    def expect(self, target: Any) -> None:
        self._losses.mark(target, "target")

    def _leave(self, path: str, module: nn.Module, output: Any) -> None:
        if not path:
            self.phase = "loss"
            self._output = output
            self._losses.mark(output, "output")

    def observations(self, step: int, loss: Any, target: Any, failed: bool, ask: Ask | None = None) -> Iterator[Observation]:
        """`failed`: an exception cut the step short; then there are only the calls up to there. `ask`: the loss alone."""
        yield from _frames(self._activity.notes, step)
        if failed:
            yield from self._losses.known_calls(None)
        elif loss is not None:
            yield from self._losses.calls(self._loss_name, loss, self._output, target, ask)
        origin = self._origins.origin((self._output, loss), step)
        if origin is not None:
            yield origin


def _frames(notes: list[Activity], step: int) -> Iterator[Observation]:
    """One Frame of all activations, merged over repeated calls of a layer, and Units of the activation layers."""
    yield from frame_of(step, [(n.path, n.values) for n in notes])
    for note in notes:
        if note.family == "activation" and note.values.ndim >= 2:
            yield units_of(step, note.path, note.activation, note.values, note.unit_axis)
