"""The Keras adapter: each capability is filled in by the module of that name."""

from collections.abc import Callable
from typing import Any

import keras

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
    Bench,
    Describes,
    Discovers,
    Explains,
    Orders,
    Steps,
    Substitutes,
    Traces,
    Watches,
)
from sleuth.core.errors import Unsupported
from sleuth.core.subject import Parts
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

    is_array = staticmethod(backend.is_array)
    values = staticmethod(backend.values)
    like = staticmethod(backend.like)
    dtype = staticmethod(backend.dtype)
    device = staticmethod(backend.device)
    measure = staticmethod(backend.measure)
    batches = staticmethod(data_sources.batches)
    rows = staticmethod(data_sources.rows)
    preserve = staticmethod(state.preserved)
    architecture = staticmethod(describing.describe)
    settings = staticmethod(describing.settings)
    bench = staticmethod(open_bench)

    def connection(self, bench: Bench, batch: Parts) -> Connection:
        held = held_by(bench)
        return held.side.connection(held, batch)

    def flow(self, bench: Bench, batch: Parts) -> Flow:
        held = held_by(bench)
        if held.has_own_step:
            raise Unsupported("a step of your own calls the model: its operations are not followed")
        return flow.flow(held, batch)

    watch = staticmethod(KerasWatch)
    discover = staticmethod(KerasDiscovery)
    explain = staticmethod(failure.explain_crash)

    def loss_with(self, bench: Bench, batch: Parts, change: Callable[[Any], Any]) -> float:
        with held_by(bench).answers_changed(change):
            return bench.loss(batch)
