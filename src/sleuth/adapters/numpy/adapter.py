"""The NumPy adapter: each capability is filled in by the module of that name."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from sleuth import kernel
from sleuth.adapters.numpy import describing, flow, state
from sleuth.adapters.numpy.bench import NumpyBench, open_bench
from sleuth.core.adapter import Adapter, Bench, Describes, Steps, Substitutes, Traces
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Architecture, Origin, Settings
from sleuth.core.subject import Parts, Subject
from sleuth.core.trial import Connection, Flow

# Their objects have forward and parameters too, and adapters of their own.
FRAMEWORKS = {"torch", "jax", "flax", "equinox", "haiku", "keras", "tensorflow", "mlx", "mithril", "tinygrad", "paddle", "mxnet"}


class NumpyAdapter(Adapter, Describes, Steps, Substitutes, Traces):
    name = "numpy"

    def claims(self, thing: Any) -> bool:
        if isinstance(thing, type) or any(kind.__module__.split(".")[0] in FRAMEWORKS for kind in type(thing).__mro__):
            return False
        return callable(getattr(thing, "forward", None)) and hasattr(thing, "parameters")

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
        return describing.describe(subject)

    def settings(self, subject: Subject) -> Settings:
        return describing.settings(subject)

    def bench(self, subject: Subject) -> AbstractContextManager[Bench]:
        return open_bench(subject)

    def connection(self, bench: Bench, batch: Parts) -> Connection:
        """There is no graph to be cut: a parameter without a gradient is one that backward() leaves out."""
        found = bench.gradients(batch).by_path
        missing = tuple(path for path, gradient in found.items() if gradient is None)
        return Connection(len(found), missing, custom=("backward",))

    def flow(self, bench: Bench, batch: Parts) -> Flow:
        if not isinstance(bench, NumpyBench):
            raise Unsupported("this bench does not hold a hand-written model")
        return flow.flow(bench, batch)

    def origin(self, bench: Bench, batch: Parts) -> Origin | None:
        return next((o for o in bench.observe(batch, 0) if isinstance(o, Origin)), None)

    def loss_with(self, bench: Bench, batch: Parts, change: Callable[[Any], Any]) -> float:
        if not isinstance(bench, NumpyBench):
            raise Unsupported("this bench does not hold a hand-written model")
        with bench.answers_changed(change):
            return bench.loss(batch)
