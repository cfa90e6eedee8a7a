"""The MLX adapter: each capability is filled in by the module of that name."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from sleuth.adapters.mlx import arrays, describing, state, tracing
from sleuth.adapters.mlx.bench import open_bench, own_bench
from sleuth.adapters.mlx.checkpoint_state import MlxCheckpointState
from sleuth.adapters.mlx.costs import MlxProfiles
from sleuth.adapters.mlx.failure import crash
from sleuth.adapters.mlx.inspecting.inspecting import MlxInspects
from sleuth.adapters.mlx.layer_values import MlxLayerValues
from sleuth.adapters.mlx.watching.discovery import MlxDiscovery
from sleuth.adapters.mlx.watching.watching import MlxWatching
from sleuth.core.contract.adapter import (
    Adapter,
    Attended,
    Bench,
    Describes,
    Discovered,
    Discovering,
    Discovers,
    Explains,
    Steps,
    Substitutes,
    Traces,
    Watches,
    Watching,
)
from sleuth.core.contract.guard import Guard
from sleuth.core.observation import Architecture, Observation, Origin, Settings
from sleuth.core.subject import Parts, Subject
from sleuth.core.trial import Connection, Flow


class MlxAdapter(
    Adapter,
    Describes,
    Steps,
    Substitutes,
    Traces,
    Watches,
    Discovers,
    Explains,
    MlxInspects,
    MlxCheckpointState,
    MlxLayerValues,
    MlxProfiles,
):
    name = "mlx"

    def claims(self, thing: Any) -> bool:
        return isinstance(thing, nn.Module)

    def is_array(self, thing: Any) -> bool:
        return arrays.is_any_array(thing)

    def values(self, array: Any) -> np.ndarray:
        return arrays.values(array)

    def like(self, values: np.ndarray, array: Any) -> Any:
        return arrays.like(values, array)

    def dtype(self, array: Any) -> str:
        return arrays.dtype_name(array)

    def device(self, array: Any) -> str:
        return "cpu" if isinstance(array, np.ndarray) else str(mx.default_device().type).removeprefix("DeviceType.")

    def measure(self, arrays_: Sequence[Any]) -> np.ndarray:
        return arrays.measure(arrays_)

    def batches(self, source: Any, batch_size: int) -> Iterable[Any] | None:
        return None

    def preserve(self, subject: Subject) -> AbstractContextManager[None]:
        return state.preserved(subject)

    def architecture(self, subject: Subject) -> Architecture:
        return describing.describe(subject)

    def settings(self, subject: Subject) -> Settings:
        return describing.settings(subject)

    def bench(self, subject: Subject) -> AbstractContextManager[Bench]:
        return open_bench(subject)

    def loss_with(self, bench: Bench, batch: Parts, change: Callable[[Any], Any]) -> float:
        return own_bench(bench).loss_with(batch, change)

    def connection(self, bench: Bench, batch: Parts) -> Connection:
        return tracing.connection(own_bench(bench), batch)

    def flow(self, bench: Bench, batch: Parts) -> Flow:
        return tracing.flow(own_bench(bench), batch)

    def origin(self, bench: Bench, batch: Parts) -> Origin | None:
        return tracing.origin(own_bench(bench), batch)

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
        return MlxWatching(model, optimisers, every=every, overhead=overhead, guard=guard, keeps=keeps)

    def discover(self, begin: Callable[[Discovered], Attended], *, steps: int | None = None) -> Discovering:
        return MlxDiscovery(begin, steps)

    def explain(self, error: BaseException) -> list[Observation]:
        return crash(error, None)
