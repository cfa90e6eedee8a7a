"""A watch as the rest of sleuth knows it: what the watcher records becomes observations, off the training thread."""

import os
from collections.abc import Iterator, Sequence

import torch
from torch import nn
from torch.optim import Optimizer

from sleuth.adapters.listening.recorder import Note, observations_of
from sleuth.adapters.listening.steps import build_step, not_finite_loss
from sleuth.adapters.listening.watching import ListeningWatch
from sleuth.adapters.torch.failures.crash import Known, explain_crash
from sleuth.adapters.torch.watching import model_calls, patches
from sleuth.adapters.torch.watching.record import Record
from sleuth.adapters.torch.watching.watcher import Watcher
from sleuth.adapters.torch.watching.weights import SAMPLED
from sleuth.core.contract.guard import Guard
from sleuth.core.contract.kept import Kept
from sleuth.core.observation import Call, Frame, NotFinite, Observation, Role

# A child made by fork has no thread to drain and must not write to the parent's file.
os.register_at_fork(after_in_child=patches.forget)
os.register_at_fork(after_in_child=model_calls.forget)


class TorchWatching(ListeningWatch):
    listener: Watcher

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
        watcher = Watcher(model, optimisers, self.put, self.say, every=every, overhead=overhead, guard=guard, keeps=keeps)
        super().__init__(watcher)
        self._told_loss = False  # that a loss on a device was not finite

    def open(self) -> None:
        self.listener.open()

    def close(self) -> None:
        self.listener.close()

    def explain(self, error: BaseException) -> list[Observation]:
        watcher = self.listener
        # What is done again must not meet our own call between the user's line and torch.
        watcher.full_looks.stop()
        in_backward = watcher.failed_backward == id(error)
        memory = watcher.switch.memory
        return explain_crash(error, Known(watcher.model, memory if memory.forwards else None, in_backward, watcher.steps))

    def take_kept(self) -> Kept | None:
        kept, self.listener.kept = self.listener.kept, None
        return kept

    def to_observations(self, record: Record | tuple[Note, ...]) -> Iterator[Observation]:
        """Of a step, or of what was left to say when the watch ended."""
        if not isinstance(record, Record):
            yield from observations_of(record)
            return
        for kind, location, function in record.places:
            yield Call(kind, record.step, location, record.optimiser, function)
        yield from observations_of(record.notes)
        tables = record.look.tables if record.look is not None else {}
        for role, (paths, table, exponents) in tables.items():
            if paths:
                yield Frame(record.step, role, paths, table, exponents, sampled=SAMPLED if role is Role.UPDATE else 0)
        loss = record.loss
        if isinstance(loss, torch.Tensor):
            loss = loss.item()
            yield from self._not_finite(record, loss)
        yield build_step(
            record.step,
            loss,
            lr=record.lr,
            gradients=tables[Role.GRADIENT][1] if Role.GRADIENT in tables else None,
            calls=record.heard.names,
            counts=record.heard.counts,
            optimiser=record.optimiser,
            training=record.training,
            seconds=record.seconds,
            phases=record.phases,
            unusual=record.unusual,
        )

    def _not_finite(self, record: Record, loss: float) -> Iterator[NotFinite]:
        """Of a loss on a device, which nobody waited for while the step went on. What a scaler skipped is its own business."""
        found = not_finite_loss(record.step, loss)
        if found is None or self._told_loss or self.listener.scenes.told_loss or any(k.is_step for k in record.heard.names[:-1]):
            return
        self._told_loss = True
        yield found
