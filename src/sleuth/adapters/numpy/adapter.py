"""The NumPy adapter: each capability is filled in by the module of that name."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from sleuth import kernel
from sleuth.adapters.numpy import describing, dissecting, flow, forms, state
from sleuth.adapters.numpy.bench import NumpyBench, open_bench
from sleuth.adapters.numpy.checkpoint_state import NumpyCheckpointState
from sleuth.adapters.numpy.costs import NumpyProfiles
from sleuth.adapters.numpy.inspecting.inspecting import NumpyInspects
from sleuth.adapters.numpy.layer_values import NumpyLayerValues
from sleuth.adapters.numpy.watching.watching import NumpyWatching
from sleuth.core.contract.adapter import (
    Adapter,
    Bench,
    Bypass,
    Describes,
    Dissects,
    Steps,
    Substitutes,
    Traces,
    Watches,
    Watching,
)
from sleuth.core.contract.guard import Guard
from sleuth.core.errors import Unsupported
from sleuth.core.location import Location
from sleuth.core.observation import Architecture, Settings
from sleuth.core.subject import Parts, Subject
from sleuth.core.trial import Connection, Flow

# Their objects have forward and parameters too, and adapters of their own.
FRAMEWORKS = {"torch", "jax", "flax", "equinox", "haiku", "keras", "tensorflow", "mlx", "mithril", "tinygrad", "paddle", "mxnet"}


class NumpyAdapter(
    NumpyCheckpointState,
    NumpyLayerValues,
    NumpyProfiles,
    NumpyInspects,
    Adapter,
    Describes,
    Dissects,
    Steps,
    Substitutes,
    Traces,
    Watches,
):
    name = "numpy"

    def claims(self, thing: Any) -> bool:
        parts = thing if isinstance(thing, list | tuple) else [thing]
        if any(kind.__module__.split(".")[0] in FRAMEWORKS for part in parts for kind in type(part).__mro__):
            return False
        return forms.is_known(thing)

    def is_array(self, thing: Any) -> bool:
        return isinstance(thing, np.ndarray)

    def values(self, array: Any) -> np.ndarray:
        return array

    def like(self, values: np.ndarray, array: Any) -> Any:
        return np.asarray(values).astype(array.dtype)

    def dtype(self, array: Any) -> str:
        return str(array.dtype)

    def device(self, array: Any) -> str:
        return "cpu"

    def measure(self, arrays: Sequence[Any]) -> np.ndarray:
        return kernel.measure(arrays)

    def batches(self, source: Any, batch_size: int) -> Iterable[Any] | None:
        return None

    def preserve(self, subject: Subject) -> AbstractContextManager[None]:
        return state.preserved(subject)

    def architecture(self, subject: Subject) -> Architecture:
        return describing.describe(forms.understood(subject))

    def settings(self, subject: Subject) -> Settings:
        return describing.settings(forms.understood(subject))

    def bench(self, subject: Subject) -> AbstractContextManager[Bench]:
        return open_bench(forms.understood(subject))

    def connection(self, bench: Bench, batch: Parts) -> Connection:
        """There is no graph to be cut: a parameter without a gradient is one that backward() leaves out."""
        found = bench.gradients(batch).by_path
        missing = tuple(path for path, gradient in found.items() if gradient is None)
        return Connection(len(found), missing, custom=("backward",))

    def flow(self, bench: Bench, batch: Parts) -> Flow:
        if not isinstance(bench, NumpyBench):
            raise Unsupported("this bench does not hold a hand-written model")
        return flow.flow(bench, batch)

    def loss_with(self, bench: Bench, batch: Parts, change: Callable[[Any], Any]) -> float:
        if not isinstance(bench, NumpyBench):
            raise Unsupported("this bench does not hold a hand-written model")
        with bench.answers_changed(change):
            return bench.loss(batch)

    def bypasses(self, bench: Bench, batch: Parts) -> list[Bypass]:
        return dissecting.bypasses(bench.loss, batch)

    def backward_line(self, bench: Bench, path: str, *, upstream: bool) -> Location | None:
        return bench.backward_line(path, upstream=upstream) if isinstance(bench, NumpyBench) else None

    def siblings(self, bench: Bench, path: str) -> tuple[str, ...]:
        return bench.followed().siblings(path) if isinstance(bench, NumpyBench) else ()

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
        return NumpyWatching(model, optimisers, every=every, overhead=overhead, guard=guard)
