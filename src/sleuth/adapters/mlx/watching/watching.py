"""A watch as the rest of sleuth knows it: of a module, or of a tree of arrays."""

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import mlx.nn as nn
from mlx.optimizers import Optimizer

from sleuth.adapters.common.first_batches import FirstBatches
from sleuth.adapters.listening.steps import build_step
from sleuth.adapters.listening.watching import ListeningWatch
from sleuth.adapters.mlx.failure import crash
from sleuth.adapters.mlx.trees.tree import Tree
from sleuth.adapters.mlx.trees.watcher import TreeWatcher
from sleuth.adapters.mlx.watching import patches
from sleuth.adapters.mlx.watching.pending_steps import Record
from sleuth.adapters.mlx.watching.step_watcher import Batches, StepWatcher
from sleuth.adapters.mlx.watching.watcher import Watcher
from sleuth.core.contract.guard import Guard
from sleuth.core.contract.kept import Kept
from sleuth.core.observation import Batch, Frame, Observation, Role, Split
from sleuth.core.reading.batch_facts import contents, describe_batch, numbers
from sleuth.core.subject import Parts

# A child made by fork has no thread to drain and must not write to the parent's file.
os.register_at_fork(after_in_child=patches.forget)


class Left(NamedTuple):
    """Batches whose facts no step has told, at the end."""

    batches: Batches


class MlxWatching(ListeningWatch):
    listener: StepWatcher

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
        if isinstance(model, Tree):
            super().__init__(TreeWatcher(model, self._put_step, every=every, overhead=overhead, keeps=keeps))
        else:
            put = self._put_step
            super().__init__(Watcher(model, optimisers, put, every=every, overhead=overhead, guard=guard, keeps=keeps))
        self._rate: float | None = None
        self._first_batches = FirstBatches()

    def open(self) -> None:
        self.listener.open()

    def close(self) -> None:
        if self.listener.model is not None:
            self.listener.close()
            self.say(Left(self.listener.left))
            self.say(*self.listener.last_words)

    def explain(self, error: BaseException) -> list[Observation]:
        return [] if self.listener.model is None else crash(error, self.listener.model)

    def take_kept(self) -> Kept | None:
        kept, self.listener.kept = self.listener.kept, None
        return kept

    def to_observations(self, record: Record | Left) -> Iterator[Observation]:
        began = time.thread_time()
        try:
            yield from self._left(record) if isinstance(record, Left) else self._step(record)
        finally:
            self.listener.seconds_off_thread += time.thread_time() - began

    def _put_step(self, record: Record) -> None:
        if record.look is not None and self._bytes >= self.most_bytes:
            # Looks come faster than they are drained: this one is measured here, and takes no room.
            record = record._replace(notes=(*record.notes, *self.made_of(record.look.observations())), look=None)
        self.put(record, record.bytes)

    def _step(self, record: Record) -> Iterator[Observation]:
        notes = [*record.notes, *(() if record.look is None else record.look.observations())]
        yield from notes
        for step, parts in record.batches:
            yield from self._described(step, parts)
        # MLX keeps the rate in an array: it is read at looks.
        self._rate = record.lr if record.lr is not None else self._rate
        yield build_step(
            record.step,
            record.value,
            lr=self._rate,
            gradients=next((n.table for n in notes if isinstance(n, Frame) and n.role is Role.GRADIENT), None),
            calls=record.calls.names,
            counts={str(kind): count for kind, count in record.calls.counts.items()},
            optimiser=record.optimiser,
            training=record.training,
            seconds=record.seconds,
        )

    def _left(self, left: Left) -> Iterable[Observation]:
        for step, parts in left.batches:
            yield from self._described(step, parts)
        yield from self._first_batches.tell()

    def _described(self, step: int, parts: Parts) -> Sequence[Batch]:
        # The adapter itself opens watches.
        from sleuth.adapters.mlx.adapter import MlxAdapter

        if self._first_batches.told or not numbers(parts.inputs, adapter := MlxAdapter()):
            return ()
        return self._first_batches.add(describe_batch(contents(parts, adapter), Split.TRAIN, step, adapter))
