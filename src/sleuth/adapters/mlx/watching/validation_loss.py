"""The loss of what a model is asked about between steps, by the formula that training uses.

Nothing is asked of the model: its answers were given to the user, who had them computed. What was asked about is told from
training data by its content, when the training is over.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from sleuth.adapters.mlx.arrays import arrays_in, as_mlx, has_values, values
from sleuth.adapters.mlx.watching.batches import arrays_by_path
from sleuth.adapters.mlx.watching.recomputed_loss import Reading, TapeLoss
from sleuth.adapters.mlx.watching.validation_target import LEAST_ROWS
from sleuth.core.contract.kept import Passed
from sleuth.core.observation import Evaluation, Split

# Of one source between two steps of the training.
MOST_ANSWERS = 64
# An answer larger than that, as of a language model, is not held until the next step.
MOST_BYTES = 4 << 20
# Rows of a batch that tell whether it is training data.
MOST_ROWS = 32
MOST_SOURCES = 8
MOST_JUDGED = 4096
# Of the rows of a batch: more of them were trained on than stand twice in the data by chance.
SHARED = 0.05
# Answers that are not computed when the next step begins: then nobody wants them.
MOST_UNCOMPUTED = 3


@dataclass
class Answer:
    source: int
    step: int
    given: Any
    output: mx.array
    target: Any = None
    is_loss: bool = False  # the output is the loss itself


@dataclass(frozen=True)
class Judged:
    step: int
    rows: int
    loss: float
    right: int | None
    prints: frozenset[int]


class Validating:
    def __init__(self) -> None:
        self._waiting: list[Answer] = []
        self._judged: dict[int, list[Judged]] = {}  # by source
        self._uncomputed = 0

    @property
    def waits(self) -> bool:
        return bool(self._waiting)

    def answered(self, source: int, step: int, given: Any, output: Any, target: Any) -> Answer | None:
        """Its target may still come: the loss function is mostly called after the model."""
        found = arrays_in(output)
        if self._uncomputed >= MOST_UNCOMPUTED or len(found) != 1 or found[0].nbytes > MOST_BYTES or not found[0].ndim:
            return None
        if given.shape[0] < LEAST_ROWS or len(self._waiting) >= MOST_ANSWERS:
            return None
        self._waiting.append(Answer(source, step, given, found[0], target))
        return self._waiting[-1]

    def valued(self, source: int, step: int, given: Any, loss: mx.array) -> None:
        """The user has asked for the loss itself."""
        if self._uncomputed < MOST_UNCOMPUTED and given.shape[0] >= LEAST_ROWS and len(self._waiting) < MOST_ANSWERS:
            self._waiting.append(Answer(source, step, given, loss, is_loss=True))

    def settle(self, reading: Reading | None, model: nn.Module | None) -> None:
        """Before the next step: the weights are still those that were asked."""
        waiting, self._waiting = self._waiting, []
        known = None if reading is None else reading.loss
        loss = None if known is None else TapeLoss(known.tape, known.result, known.target, model)
        size = None if reading is None else reading.batch_size
        for answer in waiting:
            if not answer.is_loss and (loss is None or answer.target is None or size not in (None, answer.given.shape[0])):
                continue
            if not has_values(answer.output):
                self._uncomputed += 1
                return
            self._judge(answer, loss)

    def evaluations(self, train: list[Passed]) -> Iterator[Evaluation]:
        """Of the source that was asked about most, training data left out."""
        arrays = [next((a for _, a in arrays_by_path(p.parts.inputs)), None) for p in train]
        trained_on = {one for array in arrays if array is not None and array.ndim for one in prints_of(values(array))}
        found = [_passes([j for j in judged if not _is_known(j, trained_on)]) for judged in self._judged.values()]
        for step, judged in max(found, key=len).items() if found else ():
            rows = sum(j.rows for j in judged)
            metrics = {"loss": sum(j.loss * j.rows for j in judged) / rows}
            if all(j.right is not None for j in judged):
                metrics["accuracy"] = sum(j.right or 0 for j in judged) / rows
            yield Evaluation(step, Split.VALIDATION, metrics)

    def _judge(self, answer: Answer, loss: TapeLoss | None) -> None:
        mine = self._judged.get(answer.source, [])
        if len(mine) >= MOST_JUDGED or (not mine and len(self._judged) >= MOST_SOURCES):
            return
        try:
            value = answer.output if loss is None or answer.is_loss else loss(answer.output, as_mlx(answer.target))
            told = float(value.item())
        except Exception:  # another form of the batch than training's
            return
        # An array that lasts is the same every time.
        again = mine[0].prints if mine and answer.source else None
        prints = frozenset(prints_of(values(answer.given[:MOST_ROWS]))) if again is None else again
        right = None if answer.is_loss else _right(values(answer.output), values(answer.target))
        self._judged.setdefault(answer.source, []).append(Judged(answer.step, answer.given.shape[0], told, right, prints))


def _passes(judged: list[Judged]) -> dict[int, list[Judged]]:
    found: dict[int, list[Judged]] = {}
    for one in judged:
        found.setdefault(one.step, []).append(one)
    return found


def _is_known(judged: Judged, trained_on: set[int]) -> bool:
    return len(judged.prints & trained_on) > SHARED * len(judged.prints)


def prints_of(rows: np.ndarray) -> set[int]:
    """Of rows that are not blank."""
    flat = np.ascontiguousarray(rows.reshape(len(rows), -1).astype(np.float32))
    return {hash(row.tobytes()) for row in flat if row.size == 1 or (row[:1] != row).any()}


def _right(output: np.ndarray, target: np.ndarray) -> int | None:
    """How many classes are named right; None where none are asked for."""
    if output.ndim == 2 and output.shape[1] > 1 and target.shape == output.shape[:1] and target.dtype.kind in "iu":
        return int((output.argmax(1) == target).sum())
    if output.size == target.size == len(target) and np.isin(target, (0, 1)).all():
        limit = 0.5 if output.min() >= 0 and output.max() <= 1 else 0.0
        return int(((output.ravel() > limit) == (target.ravel() > 0.5)).sum())
    return None
