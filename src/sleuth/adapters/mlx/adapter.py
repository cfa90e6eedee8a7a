"""The MLX adapter: each capability is filled in by the module of that name."""

from collections.abc import Callable, Iterable
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
    Bench,
    Describes,
    Discovers,
    Explains,
    Steps,
    Substitutes,
    Traces,
    Watches,
)
from sleuth.core.observation import Observation, Origin
from sleuth.core.subject import Parts
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

    is_array = staticmethod(arrays.is_any_array)
    values = staticmethod(arrays.values)
    like = staticmethod(arrays.like)
    dtype = staticmethod(arrays.dtype_name)

    def device(self, array: Any) -> str:
        return "cpu" if isinstance(array, np.ndarray) else str(mx.default_device().type).removeprefix("DeviceType.")

    measure = staticmethod(arrays.measure)

    def batches(self, source: Any, batch_size: int) -> Iterable[Any] | None:
        return None

    preserve = staticmethod(state.preserved)
    architecture = staticmethod(describing.describe)
    settings = staticmethod(describing.settings)
    bench = staticmethod(open_bench)

    def loss_with(self, bench: Bench, batch: Parts, change: Callable[[Any], Any]) -> float:
        return own_bench(bench).loss_with(batch, change)

    def connection(self, bench: Bench, batch: Parts) -> Connection:
        return tracing.connection(own_bench(bench), batch)

    def flow(self, bench: Bench, batch: Parts) -> Flow:
        return tracing.flow(own_bench(bench), batch)

    def origin(self, bench: Bench, batch: Parts) -> Origin | None:
        return tracing.origin(own_bench(bench), batch)

    watch = staticmethod(MlxWatching)
    discover = staticmethod(MlxDiscovery)

    def explain(self, error: BaseException) -> list[Observation]:
        return crash(error, None)
