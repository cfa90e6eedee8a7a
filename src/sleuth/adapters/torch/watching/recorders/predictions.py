"""Which classes the model names, at steps ever farther apart: few of them in a long training, enough in a short one."""

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from sleuth.adapters.listening.recorder import Note
from sleuth.adapters.torch.arrays import to_numpy
from sleuth.adapters.torch.loss_calls import bind_arguments
from sleuth.adapters.torch.pass_listener import is_tensor
from sleuth.adapters.torch.watching.call_places import users_line
from sleuth.adapters.torch.watching.loop import Loop, LoopRecorder
from sleuth.adapters.torch.watching.recorders.losses import Trail
from sleuth.core.location import Location
from sleuth.core.observation import Predictions, Split

# So many rows settle a share to a percent or two.
MOST_ROWS = 4096
# Beyond it, it is a vocabulary.
MOST_CLASSES = 1000
# The next look at the answers waits for an eighth of the steps so far: some hundred looks in a million steps.
PATIENCE = 8
IGNORED = -100
# From here on the answer is yes; None: the largest score names the class.
CLASSIFIES: Mapping[str, float | None] = {
    "cross_entropy": None,
    "nll_loss": None,
    "multi_margin_loss": None,
    "binary_cross_entropy_with_logits": 0.0,
    "binary_cross_entropy": 0.5,
}

Array = np.ndarray | torch.Tensor  # a tensor: on a device


@dataclass(frozen=True)
class Answers:
    """Small copies: one entry a row."""

    outputs: int
    named: Array
    wanted: Array
    ignored: int | None

    @property
    def on_device(self) -> bool:
        return is_tensor(self.named)

    def counted(self) -> "Tally":
        """Waits for the device."""
        named, wanted = to_numpy(self.named), to_numpy(self.wanted)
        if wanted.dtype.kind == "f" and not np.isin(wanted, (0, 1)).all():  # probabilities: no class is the right one
            return Tally(self.outputs)
        kept = (wanted >= 0) & (wanted != self.ignored)
        named, wanted = named[kept].astype(np.int64), wanted[kept].astype(np.int64)
        counts = [np.bincount(side, minlength=self.outputs) for side in (named, wanted)]
        return Tally(self.outputs, counts[0], counts[1], int(np.count_nonzero(named == wanted)))


@dataclass
class Tally:
    """How often each class was named and wanted, over some batches."""

    outputs: int
    named: np.ndarray | None = None
    wanted: np.ndarray | None = None
    right: int = 0

    def add(self, other: "Tally") -> None:
        if other.named is None or other.wanted is None or other.outputs != self.outputs:
            return
        self.named = other.named if self.named is None else self.named + other.named
        self.wanted = other.wanted if self.wanted is None else self.wanted + other.wanted
        self.right += other.right

    def predictions(self, step: int, split: Split, location: Location | None) -> Iterator[Predictions]:
        if self.named is not None and self.wanted is not None and self.wanted.any():
            yield Predictions(step, split, self.outputs, _counts(self.named), _counts(self.wanted), self.right, location)


class Predicted(LoopRecorder):
    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._trail: Trail[tuple[Answers, Location | None]] = Trail()
        self._notes: list[Note] = []
        self._next = 0

    def loss(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], returned: Any) -> None:
        if self.loop.steps < self._next or name not in CLASSIFIES:
            return
        # Losses sample by sample are weighed by their user: who is right does not decide.
        if is_tensor(returned) and returned.requires_grad and not returned.dim():
            answers = answers_of(name, bind_arguments(name, args, kwargs))
            if answers is not None:
                self._trail.note(returned, (answers, users_line(sys._getframe())))

    def backward(self, loss: torch.Tensor, options: Mapping[str, Any]) -> None:
        if self._trail:
            self._trail.backward(loss)

    def backward_end(self, loss: torch.Tensor) -> None:
        step = self.loop.steps
        for answers, location in self._trail.used():
            self._notes.append(partial(_predictions, answers, step, location))

    def take(self) -> Sequence[Note]:
        self._trail.clear()
        if self._notes:
            self._next = self.loop.steps + max(1, self.loop.steps // PATIENCE)
        notes, self._notes = self._notes, []
        return notes


def _predictions(answers: Answers, step: int, location: Location | None) -> Iterator[Predictions]:
    return answers.counted().predictions(step, Split.TRAIN, location)


def answers_of(name: str, bound: Mapping[str, Any]) -> Answers | None:
    """What the model named and what was right; None where that is not one class a sample."""
    scores, target = bound.get("input"), bound.get("target")
    if name not in CLASSIFIES or not is_tensor(scores) or not is_tensor(target) or scores.is_meta or scores.dim() < 1:
        return None
    with torch.no_grad():
        pair = (scores.detach(), target.detach())
        one, other = [to_numpy(t) for t in pair] if scores.is_cpu and target.is_cpu else pair
        limit = CLASSIFIES[name]
        if limit is not None:
            return _yes_or_no(one, other, limit)
        return None if target.is_floating_point() else _one_of_many(one, other, int(bound.get("ignore_index", IGNORED)))


def _one_of_many(scores: Array, target: Array, ignored: int) -> Answers | None:
    axis = 1 if scores.ndim > 1 else 0
    outputs = scores.shape[axis]
    if scores.ndim != target.ndim + 1 or not 1 <= outputs <= MOST_CLASSES:
        return None
    rows = _spread(target.shape)
    if rows is not None:
        scores, target = scores[(*rows[:axis], slice(None), *rows[axis:])], target[rows]
    return Answers(outputs, scores.argmax(axis).flatten(), _copied(target), ignored)


def _yes_or_no(scores: Array, target: Array, limit: float) -> Answers | None:
    # More columns are labels of their own, of which several may hold.
    if scores.shape != target.shape or not (scores.ndim == 1 or scores.shape[1] == 1):
        return None
    rows = _spread(target.shape)
    if rows is not None:
        scores, target = scores[rows], target[rows]
    return Answers(2, (scores > limit).flatten(), _copied(target), None)


def _copied(target: Array) -> Array:
    return target.flatten().clone() if is_tensor(target) else target.flatten()


def _spread(shape: Sequence[int]) -> tuple[slice, ...] | None:
    """None: all rows. Of many an even sample, taken along the longest axes."""
    surplus = -(-math.prod(shape) // MOST_ROWS)
    if surplus <= 1:
        return None
    steps = [1] * len(shape)
    for axis in sorted(range(len(shape)), key=lambda a: -shape[a]):
        steps[axis] = max(1, min(surplus, shape[axis]))
        surplus = -(-surplus // steps[axis])
    return tuple(slice(None, None, step) for step in steps)


def _counts(counts: np.ndarray) -> dict[int, int]:
    return {int(i): int(counts[i]) for i in np.flatnonzero(counts)}
