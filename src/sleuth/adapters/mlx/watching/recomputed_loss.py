"""The loss as a function of the model's output and the target, read from the tape of one step."""

import copy
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from sleuth.adapters.common.numbers_in import numbers_in
from sleuth.adapters.mlx.arrays import arrays_in
from sleuth.adapters.mlx.model_parts import parameters
from sleuth.adapters.mlx.pass_listener import LOSSES
from sleuth.adapters.mlx.watching.tape import Recorded, Tape
from sleuth.core.location import Location

# The same number, brought into another shape.
SAME = 1e-6
SEVERAL = "the model is called several times for one loss, or by another name than model(…)"
UNREADABLE = "what the loss function does cannot be read off its operations"
UNTOLD = "which part of what the loss is computed from is the target cannot be told"
DICE = "random numbers go into the loss"


@dataclass(frozen=True)
class Reading:
    """What a tape says. `target`: its number there, also where the loss cannot be called again. `batch_size`: a number goes into
    the loss that may be that of the samples, so that it is good for batches of this size only."""

    loss: "TapeLoss | None"
    target: int | None
    obstacle: str = ""
    batch_size: int | None = None


class TapeLoss:
    """The model is there for what a loss asks of its weights, as a penalty does."""

    def __init__(self, tape: Tape, result: int, target: int | None, model: nn.Module | None = None) -> None:
        self.tape, self.result, self.target, self.model = tape, result, target, model
        last = tape.maker(result)
        self.location: Location | None = None if last is None else last.location
        self.meets: Location | None = self._meeting_line()

    def _meeting_line(self) -> Location | None:
        """Where the model's answer and the target first go into one operation."""
        if self.target is None:
            return None
        answer, wanted = self.tape.depends(set(self.tape.outputs)), self.tape.depends({self.target})
        for call in self.tape.behind(self.result, {*self.tape.outputs, self.target}):
            if not answer.isdisjoint(call.given) and not wanted.isdisjoint(call.given):
                return call.location
        return None

    @property
    def __name__(self) -> str:
        return "your loss"

    def __deepcopy__(self, memo: dict[int, Any]) -> "TapeLoss":
        """The tape never changes; the model is the one that is copied beside it."""
        other = copy.copy(self)
        other.model = self.model if self.model is None else memo.get(id(self.model), self.model)
        return other

    def __call__(self, output: Any, target: Any) -> mx.array:
        known = dict(zip(self.tape.outputs, arrays_in(output), strict=True))
        wide = any(a.dtype == mx.float64 for a in known.values())
        if self.target is not None:
            known[self.target] = target
        if self.model is not None:
            own = {e.path: e.array for e in parameters(self.model)}
            known |= {number: own[path] for number, path in self.tape.weights.items() if path in own}
        if wide:
            known |= self.tape.widened(known)
        return self.tape.run(known, self.result)


def read(tape: Tape, value: float | None) -> Reading:
    """`value` is the loss of that step, where it is known."""
    doors = [a for a in (tape.arrays[n] for n in tape.given) if a.ndim]
    if tape.answers != 1 or not tape.outputs or not doors:
        return Reading(None, None, SEVERAL)
    samples = doors[0].shape[0]
    reader = _Reader(tape, samples)
    result = reader.result(value)
    if not tape.is_readable or result is None:
        return Reading(None, reader.told_target(), UNREADABLE)
    leaves = reader.leaves(result)
    targets = sorted({reader.origin(leaf) for leaf in leaves if reader.is_batch(leaf)})
    if len(targets) > 1:
        return Reading(None, reader.told_target(), UNTOLD)
    target = targets[0] if targets else None
    known = {*tape.outputs, *targets}
    calls = tape.behind(result, known)
    if any(call.owner is mx.random for call in calls):
        return Reading(None, target, DICE)
    size = samples if any(counts(call, samples) for call in calls) else None
    return Reading(TapeLoss(tape, result, target), target, batch_size=size)


def last_line(tape: Tape, value: float) -> Location | None:
    """That makes the loss, also where it cannot be computed again."""
    result = _Reader(tape, 0).result(value)
    last = None if result is None else tape.maker(result)
    return None if last is None else last.location


class _Reader:
    def __init__(self, tape: Tape, samples: int) -> None:
        self._tape, self._samples = tape, samples
        self.dependent = tape.depends(set(tape.outputs))

    def result(self, value: float | None) -> int | None:
        """The last number that comes out, and is the loss: a function may return others beside it."""
        made = [n for call in self._tape.calls for n in call.made if n in self.dependent and self._is_number(n)]
        fits = [n for n in made if value is None or abs(float(self._tape.arrays[n].item()) - value) <= SAME * abs(value)]
        return fits[-1] if fits else None

    def _is_number(self, number: int) -> bool:
        array = self._tape.arrays[number]
        return array.size == 1 and mx.issubdtype(array.dtype, mx.floating)

    def leaves(self, result: int) -> set[int]:
        """What is not made of the model's answer, at the places where it meets that."""
        calls = [c for c in self._tape.behind(result, set(self._tape.outputs)) if not self.dependent.isdisjoint(c.made)]
        return {number for call in calls for number in call.given if number not in self.dependent}

    def is_batch(self, number: int) -> bool:
        found = self._tape.sources(number, set()) - self._tape.weights.keys()
        arrays = [self._tape.arrays[n] for n in found]
        return any(a.ndim and a.shape[0] == self._samples for a in arrays)

    def origin(self, leaf: int) -> int:
        """Before it was only given another shape or type, one-hot rows were made of classes, or its samples were paired."""
        while (call := self._tape.maker(leaf)) is not None:
            given = [n for n in call.given if self.is_batch(n)]
            if len(given) == 1:
                one, other = self._tape.arrays[given[0]], self._tape.arrays[leaf]
                classes = one.ndim == 1 and mx.issubdtype(one.dtype, mx.integer)
                if one.size != other.size and not classes:
                    break
            elif len(given := list({self.origin(n) for n in given})) != 1:
                break
            leaf = given[0]
        return leaf

    def told_target(self) -> int | None:
        """What the one loss of MLX's own is given as its second argument."""
        heard = [c for c in self._tape.calls if c.owner is nn.losses and c.name in LOSSES and len(c.given) > 1]
        if len(heard) != 1 or heard[0].given[0] not in self.dependent or heard[0].given[1] in self.dependent:
            return None
        return self.origin(heard[0].given[1])


def counts(call: Recorded, samples: int) -> bool:
    """Is something put in that may have to do with how many samples there are?"""
    return samples > 1 and any(n == 1 / samples or (n > 0 and n % samples == 0) for n in numbers_in((call.args, call.kwargs)))
