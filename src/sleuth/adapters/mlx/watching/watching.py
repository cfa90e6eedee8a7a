"""A watch as the rest of sleuth knows it. What it notes holds no array: another thread may take it."""

import math
import os
from collections import deque
from collections.abc import Iterator, Sequence

import mlx.nn as nn
from mlx.optimizers import Optimizer

from sleuth.adapters.common.first_batches import FirstBatches
from sleuth.adapters.mlx.failure import crash
from sleuth.adapters.mlx.trees.tree import Tree
from sleuth.adapters.mlx.trees.watcher import TreeWatcher
from sleuth.adapters.mlx.watching import patches
from sleuth.adapters.mlx.watching.record import Record
from sleuth.adapters.mlx.watching.watcher import Watcher
from sleuth.core.contract.adapter import Watching
from sleuth.core.contract.guard import Guard
from sleuth.core.contract.kept import Kept
from sleuth.core.observation import Batch, Frame, Observation, Role, Split, Step
from sleuth.core.reading.batch_facts import contents, describe_batch, numbers
from sleuth.core.statistics import norm_of
from sleuth.core.subject import Parts

# Steps that may wait to be taken.
MOST_WAITING = 4096

# A child made by fork has no thread to drain and must not write to the parent's file.
os.register_at_fork(after_in_child=patches.forget)


class MlxWatching(Watching):
    def __init__(
        self,
        model: nn.Module,
        optimisers: Sequence[Optimizer],
        *,
        every: int | None,
        overhead: float,
        guard: Guard | None = None,
        keeps: bool = False,
    ) -> None:
        self._model: nn.Module | None = model
        self._waiting: deque[Record] = deque()
        self._last: tuple[Observation, ...] = ()
        self._watcher: Watcher | TreeWatcher
        if isinstance(model, Tree):
            self._watcher = TreeWatcher(model, self._take, every=every, overhead=overhead, keeps=keeps)
        else:
            self._watcher = Watcher(model, optimisers, self._take, every=every, overhead=overhead, guard=guard, keeps=keeps)
        self.dropped = 0
        self._rate: float | None = None
        self._first_batches = FirstBatches()
        self._left: tuple[tuple[int, Parts], ...] | None = None  # of the batches, at the end

    @property
    def own_seconds(self) -> float:  # type: ignore[override]
        return self._watcher.own_seconds

    @property
    def steps(self) -> int:  # type: ignore[override]
        return self._watcher.steps

    @property
    def looks(self) -> int:  # type: ignore[override]
        return self._watcher.looks

    @property
    def trouble(self) -> str | None:  # type: ignore[override]
        error = self._watcher.gave_up
        return None if error is None else f"{type(error).__name__}: {error}"

    @property
    def remarks(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(self._watcher.deaf)

    def open(self) -> None:
        self._watcher.open()

    def close(self) -> None:
        self._watcher.close()
        self._left = self._watcher.left
        self._last = tuple(self._watcher.last_words())
        self._model = None

    def explain(self, error: BaseException) -> list[Observation]:
        return [] if self._model is None else crash(error, self._model)

    def take_kept(self) -> Kept | None:
        kept, self._watcher.kept = self._watcher.kept, None
        return kept

    def drain(self) -> list[Observation]:
        found: list[Observation] = []
        for _ in range(len(self._waiting)):
            found += self._observed(self._waiting.popleft())
        left, self._left = self._left, None
        for step, parts in left or ():
            found += self._described(step, parts)
        if left is not None:
            found += self._first_batches.tell()
        last, self._last = self._last, ()
        return [*found, *last]

    def _described(self, step: int, parts: Parts) -> Sequence[Batch]:
        # The adapter itself opens watches.
        from sleuth.adapters.mlx.adapter import MlxAdapter

        if self._first_batches.told or not numbers(parts.inputs, adapter := MlxAdapter()):
            return ()
        return self._first_batches.add(describe_batch(contents(parts, adapter), Split.TRAIN, step - 1, adapter))

    def _observed(self, record: Record) -> Iterator[Observation]:
        yield from record.notes
        for step, parts in record.batches:
            yield from self._described(step, parts)
        table = next((n.table for n in record.notes if isinstance(n, Frame) and n.role is Role.GRADIENT), None)
        # MLX keeps the rate in an array: it is read at looks.
        self._rate = record.lr if record.lr is not None else self._rate
        value = record.value
        yield Step(
            record.step,
            value if value is not None and math.isfinite(value) else None,
            self._rate,
            gradient_norm=None if table is None else norm_of(table),
            calls=record.calls,
            counts=record.counts,
            optimiser=record.optimiser,
            training=record.training,
            seconds={"step": record.seconds},
            heard=value is not None,
        )

    def _take(self, record: Record) -> None:
        if len(self._waiting) >= MOST_WAITING:
            self.dropped += 1
            return
        self._waiting.append(record)
