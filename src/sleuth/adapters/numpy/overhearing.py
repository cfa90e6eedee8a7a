"""Values inside a hand-written model while a bench runs it: what its layers and activations return."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sleuth.adapters.numpy.bench import NumpyBench
from sleuth.adapters.numpy.listening import Listener
from sleuth.core.adapter import Bench, Overhears
from sleuth.core.errors import Unsupported
from sleuth.core.workload import Hear, Heard, Wanted


class NumpyOverhears(Overhears):
    def held_gradients(self, model: Any) -> Mapping[str, Any]:
        return {}  # hand-written code keeps its gradients where it likes

    @contextmanager
    def overheard(
        self, bench: Bench, wanted: Wanted, value: Hear, gradient: Hear | None = None, *, operations: bool = False
    ) -> Iterator[None]:
        """Told when it closes, in the order of calls. Gradients of inner values are not passed through Python's calls: none is
        heard."""
        if not isinstance(bench, NumpyBench):
            raise Unsupported("this bench does not hold a hand-written model")
        listener = Listener(bench.model)
        with listener.listening():
            yield
        calls: Counter[str] = Counter()
        for made in listener.made:
            if wanted(made.path, True):
                calls[made.path] += 1
                path = made.path if calls[made.path] == 1 else f"{made.path}#{calls[made.path]}"
                kind = made.activation or made.family
                axis = 1 if made.values.ndim >= 4 else made.values.ndim - 1
                value(Heard(path, kind, made.activation, axis), made.values)
