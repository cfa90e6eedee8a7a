"""The Keras adapter: each capability is filled in by the module of that name."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import keras
import numpy as np

from sleuth.adapters.keras import backend, data_sources, describing, failure, flow, state
from sleuth.adapters.keras.bench import held_by, open_bench
from sleuth.adapters.keras.checkpoint_state import KerasCheckpointState
from sleuth.adapters.keras.costs import KerasProfiles
from sleuth.adapters.keras.inspecting.inspecting import KerasInspects
from sleuth.adapters.keras.layer_values import KerasLayerValues
from sleuth.adapters.keras.watching.discovery import KerasDiscovery
from sleuth.adapters.keras.watching.watching import KerasWatch
from sleuth.core.contract.adapter import (
    Adapter,
    Attended,
    Bench,
    Describes,
    Discovered,
    Discovering,
    Discovers,
    Explains,
    Orders,
    Rows,
    Steps,
    Substitutes,
    Traces,
    Watches,
    Watching,
)
from sleuth.core.contract.guard import Guard
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Architecture, Observation, Origin, Settings
from sleuth.core.subject import Parts, Subject
from sleuth.core.trial import Connection, Flow


class KerasAdapter(
    KerasInspects,
    KerasCheckpointState,
    KerasLayerValues,
    KerasProfiles,
    Adapter,
    Describes,
    Discovers,
    Explains,
    Orders,
    Steps,
    Substitutes,
    Traces,
    Watches,
):
    name = "keras"

    def claims(self, thing: Any) -> bool:
        return isinstance(thing, keras.Model)

    def is_array(self, thing: Any) -> bool:
        return backend.is_array(thing)

    def values(self, array: Any) -> np.ndarray:
        return backend.values(array)

    def like(self, values: np.ndarray, array: Any) -> Any:
        return backend.like(values, array)

    def dtype(self, array: Any) -> str:
        return backend.dtype(array)

    def device(self, array: Any) -> str:
        return backend.device(array)

    def measure(self, arrays: Sequence[Any]) -> np.ndarray:
        return backend.measure(arrays)

    def batches(self, source: Any, batch_size: int) -> Iterable[Any] | None:
        return data_sources.batches(source, batch_size)

    def rows(self, source: Any) -> Rows | None:
        return data_sources.rows(source)

    def preserve(self, subject: Subject) -> AbstractContextManager[None]:
        return state.preserved(subject)

    def architecture(self, subject: Subject) -> Architecture:
        return describing.describe(subject)

    def settings(self, subject: Subject) -> Settings:
        return describing.settings(subject)

    def bench(self, subject: Subject) -> AbstractContextManager[Bench]:
        return open_bench(subject)

    def connection(self, bench: Bench, batch: Parts) -> Connection:
        held = held_by(bench)
        return held.side.connection(held, batch)

    def flow(self, bench: Bench, batch: Parts) -> Flow:
        held = held_by(bench)
        if held.has_own_step:
            raise Unsupported("a step of your own calls the model: its operations are not followed")
        return flow.flow(held, batch)

    def origin(self, bench: Bench, batch: Parts) -> Origin | None:
        return next((o for o in bench.observe(batch, 0) if isinstance(o, Origin)), None)

    def watch(
        self,
        model: Any,
        optimisers: Sequence[Any],
        *,
        every: int | None,
        overhead: float,
        guard: Guard | None = None,
        keeps: bool = False,
    ) -> Watching:
        return KerasWatch(model, optimisers, every=every, overhead=overhead, guard=guard, keeps=keeps)

    def discover(self, begin: Callable[[Discovered], Attended], *, steps: int | None = None) -> Discovering:
        return KerasDiscovery(begin, steps)

    def explain(self, error: BaseException) -> list[Observation]:
        return failure.explain_crash(error)

    def loss_with(self, bench: Bench, batch: Parts, change: Callable[[Any], Any]) -> float:
        with held_by(bench).answers_changed(change):
            return bench.loss(batch)
