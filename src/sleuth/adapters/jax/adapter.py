"""The JAX adapter: each capability is filled in by the module of that name."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from sleuth.adapters.jax import arrays, connection, describing, flow, state
from sleuth.adapters.jax.bench import JaxBench, open_bench
from sleuth.adapters.jax.checkpoint_state import JaxCheckpointState
from sleuth.adapters.jax.crash import crash
from sleuth.adapters.jax.forms import claimed
from sleuth.adapters.jax.inspecting.inspecting import JaxInspects
from sleuth.adapters.jax.layer_values import JaxLayerValues
from sleuth.adapters.jax.origin import find_origin
from sleuth.adapters.jax.profiling.profiling import JaxProfiles
from sleuth.adapters.jax.watching.discovery import JaxDiscovery
from sleuth.adapters.jax.watching.step_wrapping import listened
from sleuth.adapters.jax.watching.watching import JaxWatching
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
    WrapsSteps,
)
from sleuth.core.contract.guard import Guard
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Architecture, Observation, Origin, Settings
from sleuth.core.subject import Parts, Subject
from sleuth.core.trial import Connection, Flow


class JaxAdapter(
    JaxInspects,
    JaxCheckpointState,
    JaxLayerValues,
    JaxProfiles,
    Adapter,
    Describes,
    Discovers,
    Explains,
    Steps,
    Substitutes,
    Traces,
    Watches,
    WrapsSteps,
):
    name = "jax"

    def claims(self, thing: Any) -> bool:
        return not isinstance(thing, type) and claimed(thing)

    def is_array(self, thing: Any) -> bool:
        return arrays.is_array(thing)

    def values(self, array: Any) -> np.ndarray:
        return arrays.to_numpy(array)

    def like(self, values: np.ndarray, array: Any) -> Any:
        return arrays.like(values, array)

    def dtype(self, array: Any) -> str:
        return str(array.dtype)

    def device(self, array: Any) -> str:
        return arrays.device(array)

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

    def connection(self, bench: Bench, batch: Parts) -> Connection:
        own = _own(bench)
        return connection.connection(own.trace(batch), own.paths(), describing.holders(own.subject))

    def flow(self, bench: Bench, batch: Parts) -> Flow:
        return flow.flow(_own(bench), batch)

    def origin(self, bench: Bench, batch: Parts) -> Origin | None:
        return find_origin(_own(bench), batch, 0)

    def loss_with(self, bench: Bench, batch: Parts, change: Callable[[Any], Any]) -> float:
        return _own(bench).loss_with(batch, change)

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
        return JaxWatching(model, optimisers, every=every, overhead=overhead, guard=guard, keeps=keeps)

    def discover(self, begin: Callable[[Discovered], Attended], *, steps: int | None = None) -> Discovering:
        return JaxDiscovery(begin, steps)

    def explain(self, error: BaseException) -> list[Observation]:
        return crash(error, 0)

    def listened(self, step: Callable[..., Any]) -> Callable[..., Any]:
        return listened(step)


def _own(bench: Bench) -> JaxBench:
    if not isinstance(bench, JaxBench):
        raise Unsupported("this bench does not hold a model of JAX")
    return bench
