"""What the loss functions of the training are given, on its first steps: the same facts that an examination has."""

import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any, Generic, TypeVar

import torch
from torch import nn

from sleuth.adapters.listening.recorder import Note
from sleuth.adapters.torch.arrays import array_facts
from sleuth.adapters.torch.axis_sums import axis_sums, exp_sums
from sleuth.adapters.torch.loss_calls import FAMILIES, ROLES, SYMMETRIC, bind_arguments, known_call
from sleuth.adapters.torch.pass_listener import is_tensor
from sleuth.adapters.torch.place import is_users
from sleuth.adapters.torch.watching import patches
from sleuth.adapters.torch.watching.call_places import users_line
from sleuth.adapters.torch.watching.created_at import made_at
from sleuth.adapters.torch.watching.graphs import found_behind, maker_of, number_of
from sleuth.adapters.torch.watching.loop import Loop, LoopRecorder
from sleuth.adapters.torch.watching.origin.learning import line_behind
from sleuth.core.location import Location
from sleuth.core.observation import Absent, Argument, LossCall

T = TypeVar("T")

# How a loss is wired shows in its first calls; on few later looks others may turn up, as when a second phase begins.
FIRST_LOOKS = 3
LATER = 64
MOST_A_PLACE = 3
# A place whose calls no backward uses holds a metric.
MOST_TRIES = 6
# Of a larger array evenly spaced rows are measured.
MEASURED_VALUES = 500_000

UNHEARD = "torch had compiled something before the watch began: calls of losses cannot be listened to then"
BY_HAND = (
    "no loss function of torch.nn.functional was heard: the loss is written by hand, was imported by its name before the watch "
    "began, or is compiled into the model"
)


class Trail(Generic[T]):
    """Calls of losses, until it turns out whether a backward uses them: what none uses is a metric, or another model's."""

    def __init__(self) -> None:
        self._waiting: dict[int, T] = {}
        self._found: list[T] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def note(self, returned: Any, what: T) -> None:
        number = number_of(returned)
        if number is not None:
            self._waiting[number] = what

    def backward(self, loss: torch.Tensor) -> None:
        self._found = [self._waiting.pop(number) for number in sorted(found_behind(loss, self._waiting.keys()))]

    def used(self) -> list[T]:
        """Those of the backward that has just ended."""
        found, self._found = self._found, []
        return found

    def clear(self) -> None:
        self._waiting.clear()
        self._found = []


@dataclass(frozen=True)
class Heard:
    call: LossCall
    place: tuple[str, Location | None]


class Losses(LoopRecorder):
    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._trail: Trail[Heard] = Trail()
        self._tried: Counter[tuple[str, Location | None]] = Counter()
        self._given: Counter[tuple[str, Location | None]] = Counter()
        self._notes: list[Note] = []
        self._looks = self._backwards = 0
        self._next = LATER
        self._heard_any = self._told = False

    def loss(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], returned: Any) -> None:
        if not self.loop.looking or not (self._looks < FIRST_LOOKS or self.loop.steps >= self._next):
            return
        if number_of(returned) is None:
            return
        place = (name, users_line(sys._getframe()))
        if self._given[place] >= MOST_A_PLACE or self._tried[place] >= MOST_TRIES:
            return
        self._tried[place] += 1
        with torch.no_grad():
            self._trail.note(returned, Heard(_describe(name, args, kwargs, returned, place[1]), place))

    def backward(self, loss: torch.Tensor, options: Mapping[str, Any]) -> None:
        if self._trail:
            self._trail.backward(loss)

    def backward_end(self, loss: torch.Tensor) -> None:
        self._backwards += 1
        for heard in self._trail.used():
            self._heard_any = True
            self._given[heard.place] += 1
            self._notes.append(_valued(heard.call, self.loop.loss, untrained=self.loop.steps == 0))

    def take(self) -> Sequence[Note]:
        self._trail.clear()
        if self.loop.looking:
            self._looks += 1
            if self.loop.steps >= self._next:
                self._next = 2 * self.loop.steps
        if not self._told and not self._heard_any and self._looks >= FIRST_LOOKS and self._backwards:
            self._told = True
            self._notes.append(Absent(LossCall, BY_HAND if patches.losses_are_heard() else UNHEARD))
        notes, self._notes = self._notes, []
        return notes


def _valued(call: LossCall, value: float | torch.Tensor | None, *, untrained: bool) -> Note:
    """Of a loss that is lost later on the steps tell: a call without a value means that the untrained model has none."""

    def later() -> list[LossCall]:
        number = None if value is None else float(value)
        number = number if number is not None and math.isfinite(number) else None
        return [replace(call, value=number)] if untrained or number is not None else []

    return later


def _describe(
    name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], returned: torch.Tensor, location: Location | None
) -> LossCall:
    bound = bind_arguments(name, args, kwargs)
    family = FAMILIES.get(name, "other")
    roles = _roles(bound, family)
    arguments = tuple(_argument(key, tensor, roles[key]) for key, tensor in bound.items() if is_tensor(tensor))
    call = known_call(name, bound, arguments, returned, None, location, _wants_every_pair(bound))
    return replace(call, made_location=_made_at(sys._getframe(2)))


def _made_at(frame: FrameType | None) -> Location | None:
    """Where the object of the loss was made, if it is one."""
    while frame is not None and not is_users(frame.f_code.co_filename):
        if frame.f_code.co_name == "forward" and isinstance(owner := frame.f_locals.get("self"), nn.modules.loss._Loss):
            return made_at(owner)
        frame = frame.f_back
    return None


def _roles(bound: Mapping[str, Any], family: str) -> dict[str, str]:
    """What has a graph came out of the model: it is no truth to learn, and of two sides that are alike the output."""
    roles = {key: "weight" if key in ("weight", "pos_weight") else ROLES.get(key, "other") for key in bound}
    one, other = bound.get("input"), bound.get("target")
    if not (is_tensor(one) and is_tensor(other) and other.requires_grad):
        return roles
    if family in SYMMETRIC and not one.requires_grad:
        return {**roles, "input": "target", "target": "output"}
    return {**roles, "target": "other"}


def _argument(key: str, tensor: torch.Tensor, role: str) -> Argument:
    made, measured = maker_of(tensor), sampled(tensor)
    maker, last = line_behind(made.number if made else None), line_behind(number_of(tensor))
    return Argument(
        facts=replace(array_facts(key, measured), shape=tuple(tensor.shape)),
        role=role,
        producer=made.name if made else None,
        axis_sums=axis_sums(measured),
        producer_location=maker.location if maker else None,
        producer_axis=made.axis if made else None,
        behind=made.behind if made else None,
        exp_sums=exp_sums(measured),
        location=last.location if last else None,
        written=last is not None and last.written is not None,
    )


def sampled(tensor: torch.Tensor) -> torch.Tensor:
    """All of a small one; of a large one rows that lie evenly spaced, and of large rows points. Axis 1, the classes, stays."""
    tensor = tensor.detach()
    surplus = -(-tensor.numel() // MEASURED_VALUES)
    if surplus <= 1 or not tensor.dim():
        return tensor
    steps = [1] * tensor.dim()
    for axis in (0, *reversed(range(2, tensor.dim()))):
        steps[axis] = max(1, min(surplus, tensor.shape[axis]))
        surplus = -(-surplus // steps[axis])
    return tensor[tuple(slice(None, None, step) for step in steps)]


def _wants_every_pair(bound: Mapping[str, Any]) -> bool:
    """Each side has an axis of one where the other has more, as in a Chamfer distance: nobody does that by accident."""
    one, other = bound.get("input"), bound.get("target")
    if not (is_tensor(one) and is_tensor(other)) or one.dim() != other.dim():
        return False
    pairs = list(zip(one.shape, other.shape, strict=True))
    return any(a == 1 < b for a, b in pairs) and any(b == 1 < a for a, b in pairs)
