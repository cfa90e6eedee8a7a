"""The JAX adapter: each capability is filled in by the module of that name."""

from collections.abc import Callable, Iterable
from typing import Any

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
    Bench,
    Describes,
    Discovers,
    Explains,
    Steps,
    Substitutes,
    Traces,
    Watches,
    WrapsSteps,
)
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation, Origin
from sleuth.core.subject import Parts
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

    is_array = staticmethod(arrays.is_array)
    values = staticmethod(arrays.to_numpy)
    like = staticmethod(arrays.like)

    def dtype(self, array: Any) -> str:
        return str(array.dtype)

    device = staticmethod(arrays.device)
    measure = staticmethod(arrays.measure)

    def batches(self, source: Any, batch_size: int) -> Iterable[Any] | None:
        return None

    preserve = staticmethod(state.preserved)
    architecture = staticmethod(describing.describe)
    settings = staticmethod(describing.settings)
    bench = staticmethod(open_bench)

    def connection(self, bench: Bench, batch: Parts) -> Connection:
        own = _own(bench)
        return connection.connection(own.trace(batch), own.paths(), describing.holders(own.subject))

    def flow(self, bench: Bench, batch: Parts) -> Flow:
        return flow.flow(_own(bench), batch)

    def origin(self, bench: Bench, batch: Parts) -> Origin | None:
        return find_origin(_own(bench), batch, 0)

    def loss_with(self, bench: Bench, batch: Parts, change: Callable[[Any], Any]) -> float:
        return _own(bench).loss_with(batch, change)

    watch = staticmethod(JaxWatching)
    discover = staticmethod(JaxDiscovery)

    def explain(self, error: BaseException) -> list[Observation]:
        return crash(error, 0)

    listened = staticmethod(listened)


def _own(bench: Bench) -> JaxBench:
    if not isinstance(bench, JaxBench):
        raise Unsupported("this bench does not hold a model of JAX")
    return bench
