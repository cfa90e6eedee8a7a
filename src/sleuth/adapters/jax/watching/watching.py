"""A watch as the rest of sleuth knows it: what the watcher notes becomes observations, off the training thread."""

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from sleuth.adapters.jax.crash import crash
from sleuth.adapters.jax.optimising import rate_of, read, transformation
from sleuth.adapters.jax.watching.asked_inputs import Asked
from sleuth.adapters.jax.watching.channel import lane_of
from sleuth.adapters.jax.watching.created_at import made_at, scheduled_at
from sleuth.adapters.jax.watching.hub import HUB
from sleuth.adapters.jax.watching.modes import ModeNotes, switches_of
from sleuth.adapters.jax.watching.optimiser_restarts import Restarts
from sleuth.adapters.jax.watching.rebuilt_training import kept
from sleuth.adapters.jax.watching.record import Record, observations
from sleuth.adapters.jax.watching.seen_batches import Passing
from sleuth.adapters.jax.watching.unused_gradients import Unused
from sleuth.adapters.jax.watching.watcher import Watcher
from sleuth.core.contract.adapter import Watching
from sleuth.core.contract.guard import Guard
from sleuth.core.contract.kept import Kept
from sleuth.core.observation import (
    Absent,
    Batch,
    Call,
    Frame,
    LossCall,
    Memory,
    Modes,
    NotFinite,
    Observation,
    Optimiser,
    Precision,
    Predictions,
    Retention,
    Role,
    Step,
    Units,
)
from sleuth.core.statistics import COLUMNS

# Steps that may wait. Looks hold tables of all tensors: fewer of those.
MOST_WAITING = 4096
MOST_LOOKS_WAITING = 512

INSIDE = "inside this step only loss, gradients, weights and updates could be listened to"
NO_GRAPH = "JAX keeps no graph between steps"
TAKEN = (
    "the step takes the memory of its weights for itself (donation) and writes them by hand, so what became of them is not known"
)
# Told where a step says nothing of it.
UNTOLD: dict[type[Observation] | Role, str] = {
    Role.ACTIVATION: INSIDE,
    Units: "no activation was met inside the step that could be listened to",
    LossCall: "no loss of optax was met inside the step: only those are known there",
    Predictions: "no loss of optax was met inside the step: only those are known there",
    Optimiser: "no state of an optimiser that counts its steps was met among the arguments of the step",
}
DEAF: dict[type[Observation] | Role, str] = {
    Precision: INSIDE,
    Modes: "JAX passes the mode of a model as an argument, and that is not listened to",
    Batch: "data is read by the user's own code, and that is not listened to",
    Retention: NO_GRAPH,
    Memory: "the memory of the process is not read while JAX trains",
}
UNHEARD = (
    "no step was heard: what was compiled before the watch began is not listened to; wrap it, step = sleuth.watch_step(step), "
    "or use sleuth run"
)

NANS = COLUMNS.index("nans")

os.register_at_fork(after_in_child=HUB.forget)


class JaxWatching(Watching):
    def __init__(
        self,
        model: Any,
        optimisers: Sequence[Any] = (),
        *,
        every: int | None,
        overhead: float,
        guard: Guard | None = None,
        keeps: bool = False,
    ) -> None:
        self._waiting: deque[Record] = deque()
        self._looks_waiting = 0
        self._spoilt: list[str] = []
        self._told = False
        self._untold = dict(UNTOLD)
        self.watcher = Watcher(self._put, _shapes(model), every=every, overhead=overhead, guard=guard or Guard())
        self.dropped = 0
        self.watcher.passing, self.watcher.asked = (Passing(), Asked()) if keeps else (None, None)
        self.watcher.switches = switches_of(model)
        self._modes = None if self.watcher.switches is None else ModeNotes(self.watcher.switches)
        self.watcher.optimiser = next((tx for o in optimisers if (tx := transformation(o)) is not None), None)
        self._rate: Callable[[int], float | None] | None = None
        self._restarts = Restarts("optax", self.watcher.begun)
        self._ahead = 0
        self._remembers = False  # the optimiser keeps something from step to step
        self._unused, self._ended, self._training = Unused(), False, True
        self._told_taken = self._failed = self._broken = False

    @property
    def own_seconds(self) -> float:  # type: ignore[override]
        return self.watcher.own_seconds

    @property
    def steps(self) -> int:  # type: ignore[override]
        return self.watcher.steps

    @property
    def looks(self) -> int:  # type: ignore[override]
        return self.watcher.looks

    @property
    def trouble(self) -> str | None:  # type: ignore[override]
        error = self.watcher.gave_up
        return None if error is None else f"{type(error).__name__}: {error}"

    @property
    def remarks(self) -> tuple[str, ...]:  # type: ignore[override]
        unheard = (UNHEARD,) if self.watcher.is_closed and self.steps == 0 and not self._failed else ()
        return (*unheard, *self.watcher.remarks, *self._spoilt)

    def open(self) -> None:
        HUB.join(self.watcher)

    def close(self) -> None:
        HUB.leave(self.watcher)
        self.watcher.close()

    def take_kept(self) -> Kept | None:
        passing, self.watcher.passing = self.watcher.passing, None
        if passing is None:
            return None
        try:
            return kept(passing, self.watcher.optimiser, self.watcher.asked)
        except Exception as error:
            self.watcher.say(f"what passed by could not be put together: {type(error).__name__}: {error}")
            return None

    def explain(self, error: BaseException) -> list[Observation]:
        self._failed = True
        return crash(error, self.steps)

    def drain(self) -> list[Observation]:
        found: list[Observation] = []
        if not self._told and (self._waiting or self.watcher.is_closed):
            self._told = True
            deaf = DEAF if self._modes is None else {what: reason for what, reason in DEAF.items() if what is not Modes}
            found += [Absent(what, reason) for what, reason in deaf.items()]
            found += self._observed(self._meet_optimiser())
        for _ in range(len(self._waiting)):
            record = self._waiting.popleft()
            self._looks_waiting -= record.look is not None
            found += self._observed(self._of(record))
        return found + self.watcher.take_notes() + list(self._at_the_end())

    def _meet_optimiser(self) -> Iterator[Observation]:
        """Once the first steps were taken: then it is known."""
        tx = self.watcher.optimiser
        if tx is None:
            return
        self._rate = rate_of(tx)
        made, scheduled, recipe = made_at(tx), scheduled_at(tx), read(tx)
        self._restarts = Restarts(recipe.name or "optax", self.watcher.begun, made)
        self._remembers = recipe.name not in (None, "SGD") or bool(recipe.options.get("momentum"))
        for kind, place in (("made-optimiser", made), ("made-scheduler", scheduled)):
            if place is not None:
                yield Call(kind, 0, place)

    def _of(self, record: Record) -> Iterator[Observation]:
        look = record.look
        calls: tuple[str, ...] = ()
        if look is not None and look.count is not None:
            self._ahead = int(np.asarray(look.count)) - record.step
        if self._modes is not None and record.validation is not None:
            yield from self._modes.validated(record.step, record.validation, last=False)
        if self._modes is not None and look is not None and look.active is not None:
            yield from self._modes.trained(record.step, look.active)
            calls, self._training = self._modes.calls(look.active), any(look.active) or not look.active
        for observation in observations(record, self._rate, calls, training=self._training, ahead=self._ahead):
            self._unused.hear(observation)
            self._untold.pop(observation.role if isinstance(observation, Frame) else type(observation), None)
            yield observation
            if isinstance(observation, Frame) and observation.role is Role.GRADIENT and self._is_broken(observation, record):
                yield from self._broken_gradient(observation)
            if isinstance(observation, Step) and look is not None and look.count is not None:
                parameters, self._restarts.called_at = len(record.lane.names), self.watcher.called_at
                yield from self._restarts.met(record.step, int(np.asarray(look.count)), parameters, observation.loss)
            elif (
                isinstance(observation, Step) and look is not None and self._remembers and self.watcher.begins_inside is not None
            ):
                place, parameters = self.watcher.begins_inside, len(record.lane.names)
                yield from self._restarts.inside(record.step, place, parameters, observation.loss)
        if look is not None:
            self.watcher.tripwire.read(record.step)
            yield from (Absent(what, reason) for what, reason in self._untold.items())
            self._untold = {}

    def _is_broken(self, gradients: Frame, record: Record) -> bool:
        """For the first time, and not because of its loss."""
        losses = [float(np.asarray(loss)) for loss in record.losses]
        bad = gradients.table[:, NANS].any() and np.isfinite(losses).all() and not self._broken
        self._broken |= bool(bad)
        return bool(bad)

    def _broken_gradient(self, gradients: Frame) -> Iterator[Observation]:
        path, bad = next((path, s) for path, s in gradients.statistics().items() if s.nans)
        born = list(self.watcher.tripwire.gradient_origin(gradients.step))
        if born:
            yield NotFinite(gradients.step, "gradient", path, bad.nans, bad.infs)
        yield from born

    def _at_the_end(self) -> Iterator[Observation]:
        if self.watcher.taken and not self._told_taken:
            self._told_taken = True
            yield Absent(Role.UPDATE, TAKEN)
        if not self.watcher.is_closed or self._ended:
            return
        self._ended = True
        if self._modes is not None and self.watcher.validation is not None:
            yield from self._modes.validated(self.steps, self.watcher.validation, last=True)
        yield from self._unused.at_the_end(self.steps, updated=self.watcher.hears_updates, discarded=self.watcher.discarded)

    def _observed(self, made: Iterable[Observation]) -> list[Observation]:
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
        if len(self._waiting) >= MOST_WAITING or (record.look is not None and self._looks_waiting >= MOST_LOOKS_WAITING):
            self.dropped += 1
            return
        self._looks_waiting += record.look is not None
        self._waiting.append(record)


def _shapes(model: Any) -> list[tuple[tuple[int, ...], str]]:
    """Of every array that the model holds: a training may learn some of them only."""
    nnx: Any = sys.modules.get("flax.nnx")
    tree = nnx.state(model) if nnx is not None and isinstance(model, nnx.Module) else model
    lane = lane_of([leaf for leaf in jax.tree_util.tree_leaves(tree) if hasattr(leaf, "dtype")])[0]
    return list(zip(lane.shapes, lane.dtypes, strict=True))
