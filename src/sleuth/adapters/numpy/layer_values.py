"""Values inside a hand-written model while a bench runs it: what its layers and activations return."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sleuth.adapters.numpy.bench import NumpyBench
from sleuth.adapters.numpy.pass_listener import Listener
from sleuth.core.contract.adapter import Bench, LayerValues
from sleuth.core.contract.workload import Hear, Heard, Wanted
from sleuth.core.errors import Unsupported


class NumpyLayerValues(LayerValues):
    def held_gradients(self, model: Any) -> Mapping[str, Any]:
        return {}  # hand-written code keeps its gradients where it likes

    @contextmanager
    def layer_values(
        self, bench: Bench, wanted: Wanted, value: Hear, gradient: Hear | None = None, *, operations: bool = False
    ) -> Iterator[None]:
        """Told when it closes, in the order of calls. The gradient by a layer's output is what its backward is given: a network
        of plain functions passes none through Python's calls."""
        if not isinstance(bench, NumpyBench):
            raise Unsupported("this bench does not hold a hand-written model")
        listener = Listener(bench.model)
        with listener.listening():
            yield
        self._tell(listener, wanted, value)
        if gradient is not None:
            self._tell_gradients(listener, wanted, gradient)

    def _tell(self, listener: Listener, wanted: Wanted, value: Hear) -> None:
        calls: Counter[str] = Counter()
        for made in listener.made:
            if wanted(made.path, True):
                calls[made.path] += 1
                path = made.path if calls[made.path] == 1 else f"{made.path}#{calls[made.path]}"
                kind = made.activation or made.family
                axis = 1 if made.values.ndim >= 4 else made.values.ndim - 1
                value(Heard(path, kind, made.activation, axis), made.values)

    def _tell_gradients(self, listener: Listener, wanted: Wanted, gradient: Hear) -> None:
        known = {made.path: made for made in listener.made}
        for path, array in listener.passed:
            made = known.get(path)
            if made is not None and wanted(path, True) and array.shape == made.values.shape:
                axis = 1 if array.ndim >= 4 else array.ndim - 1
                gradient(Heard(path, made.activation or made.family, made.activation, axis), array)
