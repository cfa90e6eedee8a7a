"""A watch as the rest of sleuth knows it: what the watcher notes becomes observations, off the training thread."""

import math
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from sleuth.adapters.torch.failures.crash import Known, explain_crash
from sleuth.adapters.torch.watching import patches
from sleuth.adapters.torch.watching.ear import Note
from sleuth.adapters.torch.watching.record import Record
from sleuth.adapters.torch.watching.watcher import Watcher
from sleuth.core.contract.adapter import Watching
from sleuth.core.contract.guard import Guard
from sleuth.core.contract.kept import Kept
from sleuth.core.observation import Call, Frame, Observation, Role, Step
from sleuth.core.statistics import norm_of

# Steps that may wait. Looks hold tables of all tensors: fewer of those.
MOST_WAITING = 4096
MOST_BYTES_WAITING = 64 << 20

# A child made by fork has no thread to drain and must not write to the parent's file.
os.register_at_fork(after_in_child=patches.forget)


class TorchWatching(Watching):
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
        self._waiting: deque[Record] = deque()
        self._bytes_waiting = 0
        self._spoilt: list[str] = []  # what could not be made into observations
        self._watcher = Watcher(model, optimisers, self._put, every=every, overhead=overhead, guard=guard, keeps=keeps)
        self.dropped = 0

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
        return (*self._watcher.deaf, *self._spoilt)

    def open(self) -> None:
        self._watcher.open()

    def close(self) -> None:
        self._watcher.close()

    def explain(self, error: BaseException) -> list[Observation]:
        watcher = self._watcher
        # What is done again must not meet our own call between the user's line and torch.
        watcher.full_looks.stop()
        in_backward = watcher.failed_backward == id(error)
        memory = watcher.switch.memory
        return explain_crash(error, Known(watcher.model, memory if memory.forwards else None, in_backward, watcher.steps))

    def take_kept(self) -> Kept | None:
        kept, self._watcher.kept = self._watcher.kept, None
        return kept

    def drain(self) -> list[Observation]:
        found: list[Observation] = []
        for _ in range(len(self._waiting)):
            record = self._waiting.popleft()
            if record.look is not None:
                self._bytes_waiting -= record.look.size
            found += self._observed(_observations(record))
        # Set once, by another thread, when the watch ends: to empty it at any other moment could throw it away.
        if self._watcher.left:
            left, self._watcher.left = self._watcher.left, ()
            found += self._observed(_made(left))
        return found

    def _observed(self, made: Iterator[Observation]) -> list[Observation]:
        """Whatever goes wrong in one step's notes, the next step's are wanted."""
        found = []
        try:
            for observation in made:
                found.append(observation)
        except Exception as error:
            self._spoilt.append(f"notes of a step were lost: {type(error).__name__}: {error}")
            del self._spoilt[1:]
        return found

    def _put(self, record: Record) -> None:
        size = 0 if record.look is None else record.look.size
        if len(self._waiting) >= MOST_WAITING or (size and self._bytes_waiting >= MOST_BYTES_WAITING):
            self.dropped += 1
            return
        self._bytes_waiting += size
        self._waiting.append(record)


def _observations(record: Record) -> Iterator[Observation]:
    for kind, location, function in record.places:
        yield Call(kind, record.step, location, record.optimiser, function)
    yield from _made(record.notes)
    norm = None
    tables = record.look.tables if record.look is not None else {}
    for role, (paths, table, exponents) in tables.items():
        if role is Role.GRADIENT:
            norm = norm_of(table)
        if paths:
            yield Frame(record.step, role, paths, table, exponents, sampled=record.sampled if role is Role.UPDATE else 0)
    yield Step(
        record.step,
        _finite(record.loss),
        record.lr,
        gradient_norm=norm,
        calls=record.calls,
        counts=record.counts,
        optimiser=record.optimiser,
        training=record.training,
        unusual=record.unusual,
        seconds={"step": record.seconds, **record.phases},
        heard=record.loss is not None,
    )


def _made(notes: Iterable[Note]) -> Iterator[Observation]:
    for note in notes:
        if isinstance(note, Observation):
            yield note
        else:
            yield from note()


def _finite(loss: Any) -> float | None:
    value = loss.item() if isinstance(loss, torch.Tensor) else loss
    return value if value is not None and math.isfinite(value) else None
