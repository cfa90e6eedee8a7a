"""A watch as the rest of sleuth knows it: what the watcher notes becomes observations, off the training thread."""

import os
import sys
from collections import deque
from collections.abc import Iterable
from typing import Any

import jax

from sleuth.adapters.jax.watching.channel import lane_of
from sleuth.adapters.jax.watching.hub import HUB
from sleuth.adapters.jax.watching.record import Record, observations
from sleuth.adapters.jax.watching.watcher import Watcher
from sleuth.core.adapter import Watching
from sleuth.core.guard import Guard
from sleuth.core.observation import (
    Absent,
    Batch,
    Call,
    LossCall,
    Memory,
    Modes,
    Observation,
    Optimiser,
    Precision,
    Predictions,
    Retention,
    Role,
    Units,
)

# Steps that may wait. Looks hold tables of all tensors: fewer of those.
MOST_WAITING = 4096
MOST_LOOKS_WAITING = 512

INSIDE = "inside a compiled step of JAX only loss, gradients, weights and updates are listened to"
NO_GRAPH = "JAX keeps no graph between steps"
NO_LOOP = "a step of JAX is a function: there are no calls of an optimiser or of a backward to hear"
DEAF: dict[type[Observation] | Role, str] = {
    Role.ACTIVATION: INSIDE,
    Units: INSIDE,
    LossCall: INSIDE,
    Predictions: INSIDE,
    Precision: INSIDE,
    Modes: "JAX passes the mode of a model as an argument, and that is not listened to",
    Batch: "data is read by the user's own code, and that is not listened to",
    Call: NO_LOOP,
    Optimiser: NO_LOOP,
    Retention: NO_GRAPH,
    Memory: "the memory of the process is not read while JAX trains",
}
UNHEARD = (
    "no step was heard: what was compiled before the watch began is not listened to; wrap it, step = sleuth.watch_step(step), "
    "or use sleuth run"
)

os.register_at_fork(after_in_child=HUB.forget)


class JaxWatching(Watching):
    def __init__(self, model: Any, *, every: int | None, overhead: float, guard: Guard | None = None) -> None:
        self._waiting: deque[Record] = deque()
        self._looks_waiting = 0
        self._spoilt: list[str] = []
        self._told = False
        self.watcher = Watcher(self._put, _shapes(model), every=every, overhead=overhead, guard=guard or Guard())
        self.dropped = 0

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
        unheard = (UNHEARD,) if self.watcher.is_closed and self.steps == 0 else ()
        return (*unheard, *self.watcher.remarks, *self._spoilt)

    def open(self) -> None:
        HUB.join(self.watcher)

    def close(self) -> None:
        HUB.leave(self.watcher)
        self.watcher.close()

    def explain(self, error: BaseException) -> list[Observation]:
        return []

    def drain(self) -> list[Observation]:
        found: list[Observation] = []
        if not self._told:
            self._told = True
            found += [Absent(what, reason) for what, reason in DEAF.items()]
        for _ in range(len(self._waiting)):
            record = self._waiting.popleft()
            self._looks_waiting -= record.look is not None
            found += self._observed(observations(record))
        return found + self.watcher.take_notes()

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
