"""Whether a step uses a gradient that an earlier step has used already.

That, and not a backward onto a gradient that is still there, is what a forgotten zero_grad looks like: accumulation and
GANs do the latter on purpose. A few parameters speak for all: small ones, from all over the model.
"""

from collections.abc import Sequence
from enum import Enum
from itertools import pairwise

import torch
from torch.nn.parameter import is_lazy

from sleuth.core.observation.calls import CallKind

SPOKESMEN = 4
# Whether an optimiser writes into the gradients shows in its first steps.
LEARNING_STEPS = 3
# Of a parameter, kept to see whether anybody moves it although no step is heard.
KEPT_VALUES = 1024
# An unusual step is asked whether there is any gradient at all: at most of so many parameters.
ASKED = 64

# Others, sharded ones say, need not have memory of their own.
PLAIN = (torch.Tensor, torch.nn.Parameter)

# UNKNOWN: there is a gradient, but the steps before were not listened to.
EMPTY, FRESH, CONSUMED, POLLUTED, UNKNOWN = range(5)

Mark = tuple[int, int]


class Touched(Enum):
    """The kind of gradient that somebody who is known has changed."""

    FRESH = "fresh"
    USED = "used"
    EMPTY = "empty"  # zeros


class Spokesman:
    """One parameter. Nothing is hung on the user's tensor."""

    __slots__ = ("altered", "mark", "moved", "parameter", "state")

    def __init__(self, parameter: torch.Tensor) -> None:
        self.parameter = parameter
        self.state = EMPTY
        self.mark: Mark | None = None
        self.moved = False  # the last backward was seen to leave something other than zero
        self.altered = False  # a used gradient was changed by hand, but not cleared: that is meant

    def empty(self) -> None:
        self.state, self.moved, self.altered = EMPTY, False, False


class GradientStates:
    """Of one optimiser, or of a model that no optimiser is known for."""

    def __init__(self, parameters: Sequence[torch.Tensor]) -> None:
        self._parameters = parameters
        self._spokesmen = [Spokesman(p) for p in _chosen(parameters)]
        self.backwards = 0  # that came by here since the last step
        self.all_backwards = 0
        self._cleared = False  # zero_grad was called since the gradients were last looked at
        self._erased = False  # a fresh gradient was cleared since the last step
        self._unused = 0  # backwards since somebody's step that are in the gradients now
        self._wasted = 0  # backwards since the last step that were cleared out of them
        self._weights = (0, 0)  # their version at the last backward
        self.wasted = 0  # of the latest step: backwards that it should have used, as it seems
        self._read_values = False  # somebody clears by hand: only the values tell
        self._start: list[torch.Tensor] | None = []
        self._steps = 0
        self._written_into = False  # by the optimiser, when it steps

    def before_backward(self) -> None:
        self._look(reading=False)

    def after_backward(self, *, reading: bool = False) -> bool:
        """Did the backward reach these parameters? `reading`: values may be read, which costs a little."""
        reached = False
        for one in self._spokesmen:
            gradient = one.parameter.grad
            if gradient is None or (mark := (id(gradient), gradient._version)) == one.mark:
                continue
            if one.state != UNKNOWN:
                one.state = POLLUTED if one.state in (CONSUMED, POLLUTED) else FRESH
            one.mark = mark
            one.moved = (reading or self._read_values) and not _is_zero(gradient)
            reached = True
        if reached:
            self.backwards += 1
            self.all_backwards += 1
            self._unused += 1
            self._weights = self.version()
            if self._start == []:
                self._start = self._values()
        return reached

    def used_elsewhere(self) -> None:
        """What came so far was for somebody else: another optimiser that has stepped, or one that calls a closure."""
        self._unused = 0

    def settle(self) -> None:
        """Somebody who is known is about to change gradients: whatever happened before was somebody else."""
        self._look(reading=False)

    def clear(self) -> None:
        """zero_grad is about to be called."""
        self._cleared = True

    def handle(self) -> Touched | None:
        """Somebody who is known has changed gradients: of which kind? None: they are as they were."""
        found: Touched | None = None
        for one in self._spokesmen:
            gradient = one.parameter.grad
            mark = None if gradient is None else (id(gradient), gradient._version)
            if mark == one.mark or mark is None:
                continue
            one.mark = mark
            if one.state in (FRESH, POLLUTED, UNKNOWN):
                found = Touched.FRESH
            elif one.state == CONSUMED and found is not Touched.FRESH:
                found = Touched.USED
            else:
                found = found or Touched.EMPTY
        return found

    def step(self, *, reading: bool = False) -> CallKind:
        """What kind of step this is; see Step.calls."""
        if self._cleared or reading or self._read_values or any(one.state != FRESH for one in self._spokesmen):
            self._look(reading=reading)
        elif any(one.parameter.grad is None for one in self._spokesmen):
            self._look(reading=False)
        kind = self._kind()
        # Whoever puts something else in their place has taken the parts for it from each backward.
        self.wasted = self._wasted if kind == CallKind.STEP and self._is_as_left() else 0
        self._wasted = self._unused = 0
        for one in self._spokesmen:
            if one.state != EMPTY:
                one.state = CONSUMED
        self.backwards = 0
        self._erased = False
        self._start = None
        return kind

    def after_step(self) -> None:
        """Some optimisers write into the gradients: that is nobody's intention."""
        if self._steps >= LEARNING_STEPS and not self._written_into:
            return
        self._steps += 1
        for one in self._spokesmen:
            gradient = one.parameter.grad
            mark = None if gradient is None else (id(gradient), gradient._version)
            self._written_into |= mark != one.mark
            one.mark = mark

    def resume(self, *, stepped: bool) -> None:
        """Some steps were not listened to. `stepped`: this very moment these gradients were used."""
        self.backwards, self._cleared, self._erased = 0, False, False
        for one in self._spokesmen:
            gradient = one.parameter.grad
            one.empty()
            one.mark = None if gradient is None else (id(gradient), gradient._version)
            if gradient is not None:
                one.state = CONSUMED if stepped else UNKNOWN

    def inherit(self, other: "GradientStates") -> None:
        """What was seen of these parameters while another one held them."""
        known = {id(one.parameter): one for one in other._spokesmen}
        self.backwards, self._erased, self._read_values = other.backwards, other._erased, other._read_values
        for one in self._spokesmen:
            before = known.get(id(one.parameter))
            gradient = one.parameter.grad
            if before is not None:
                one.state, one.mark, one.moved, one.altered = before.state, before.mark, before.moved, before.altered
            elif gradient is not None:
                one.state, one.mark = (FRESH if other.backwards else EMPTY), (id(gradient), gradient._version)

    def unmoved(self) -> bool:
        """Are the parameters what they were at the first backward? Only while no step came."""
        if not self._start:
            return False
        return all(torch.equal(one, other) for one, other in zip(self._start, self._values(), strict=True))

    def version(self) -> tuple[int, int]:
        """Another one when somebody wrote into the parameters."""
        if not self._spokesmen:
            return (0, 0)
        parameter = self._spokesmen[0].parameter
        return parameter._version, parameter.data_ptr() if type(parameter) in PLAIN else 0

    def _kind(self) -> CallKind:
        polluted = [one for one in self._spokesmen if one.state == POLLUTED]
        if any(not one.altered for one in polluted):
            return CallKind.STEP_ON_USED_GRADIENT
        if polluted:
            return CallKind.STEP_ON_ALTERED_GRADIENT
        if any(one.state in (FRESH, UNKNOWN) for one in self._spokesmen):
            return CallKind.STEP
        consumed = [one for one in self._spokesmen if one.state == CONSUMED]
        if consumed and not self.backwards:
            return CallKind.STEP_ON_GIVEN_GRADIENT if any(one.altered for one in consumed) else CallKind.STEP_ON_SAME_GRADIENT
        if any(p.grad is not None and not _is_zero(p.grad) for p in self._parameters[:ASKED]):
            return CallKind.STEP_ON_GIVEN_GRADIENT
        return CallKind.STEP_ON_ERASED_GRADIENT if self.backwards and self._erased else CallKind.STEP_WITHOUT_GRADIENT

    def _look(self, *, reading: bool) -> None:
        """Who was cleared or changed since the last look?"""
        cleared, self._cleared = self._cleared, False
        full = sum(one.state in (FRESH, POLLUTED) for one in self._spokesmen)
        self._look_at_each(cleared, reading)
        left = sum(one.state in (FRESH, POLLUTED) for one in self._spokesmen)
        if full and not left:
            # Weights that somebody has moved meanwhile were moved by that gradient: a trial step, a search along a line.
            self._wasted += self._unused if self._weights == self.version() else 0
            self._unused = 0

    def _look_at_each(self, cleared: bool, reading: bool) -> None:
        for one in self._spokesmen:
            gradient = one.parameter.grad
            if gradient is None:
                self._erased |= one.state in (FRESH, POLLUTED)
                one.empty()
                one.mark = None
                continue
            mark = (id(gradient), gradient._version)
            changed, one.mark = mark != one.mark, mark
            if one.state == EMPTY:
                continue
            if changed and cleared:
                self._erased |= one.state in (FRESH, POLLUTED)
                one.empty()
            elif one.state == FRESH:
                # A gradient that was clipped to nothing or never was anything is not one that was cleared.
                if one.moved and (reading or self._read_values) and _is_zero(gradient):
                    self._erased = self._read_values = True
                    one.empty()
            # `grad.data.zero_()` leaves no mark, so a used gradient's values are read.
            elif _is_zero(gradient):
                self._erased |= one.state == POLLUTED
                one.empty()
            elif changed:
                one.altered = True

    def _is_as_left(self) -> bool:
        """By the last backward, and by whoever is known to change gradients."""
        gradients = [(one.parameter.grad, one.mark) for one in self._spokesmen if one.state == FRESH]
        return all(g is not None and (id(g), g._version) == mark for g, mark in gradients)

    def _values(self) -> list[torch.Tensor]:
        with torch.no_grad():
            return [one.parameter.detach().flatten()[:KEPT_VALUES].clone() for one in self._spokesmen]


def _chosen(parameters: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The smallest of each part of the model."""
    known = [p for p in parameters if not is_lazy(p)]
    able = [p for p in known if p.requires_grad] or known
    parts = min(SPOKESMEN, len(able))
    bounds = [len(able) * i // parts for i in range(parts + 1)] if parts else [0]
    return [min(able[first:last], key=lambda p: p.numel()) for first, last in pairwise(bounds)]


def _is_zero(gradient: torch.Tensor) -> bool:
    values = gradient._values() if gradient.is_sparse else gradient
    return not values.any()
