"""What the loop called since its last step, the line of the first call of each kind, and what else is to be told of it."""

from typing import Any

import mlx.core as mx

from sleuth.adapters.listening.calls import Calls
from sleuth.adapters.mlx.arrays import first_array
from sleuth.adapters.mlx.user_line import users_line
from sleuth.core.observation import Call, Observation
from sleuth.core.observation.calls import CallKind


class LoopCalls(Calls):
    def __init__(self) -> None:
        super().__init__()
        self.places: dict[CallKind, Call] = {}
        self._notes: list[Observation] = []

    def say_at(self, kind: CallKind, step: int) -> None:
        """With the user's line, where this kind of call is new."""
        self.say(kind)
        if kind not in self.places:
            self.place(kind, Call(kind, step, users_line()))

    def place(self, kind: CallKind, call: Call | None) -> None:
        if kind not in self.places and call is not None:
            self.places[kind] = Call(kind, call.step, call.location)
            self._notes.append(self.places[kind])

    def take_notes(self) -> list[Observation]:
        found, self._notes = self._notes, []
        return found


class Clipping:
    """Whether what `clip_grad_norm` returns reaches the step. It changes nothing in place."""

    def __init__(self) -> None:
        self._given: mx.array | None = None  # one of the gradients that were clipped
        self._used: mx.array | None = None  # and one that the last step took

    def clipped(self, gradients: Any) -> CallKind:
        """What is to be said of it."""
        first = first_array(gradients)
        if first is not None and first is self._used:
            return CallKind.CLIP_ON_USED_GRADIENT
        self._given = first
        return CallKind.CLIP

    def stepped(self, gradients: Any) -> bool:
        """False: the step takes what stood before the clipping."""
        self._used = first_array(gradients)
        given, self._given = self._given, None
        return given is None or given is not self._used
