"""Where NaN or Inf was born in one listened step."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.pass_listener import Hearing
from sleuth.core.observation import Origin
from sleuth.core.runtime.tree import leaves


class Origins:
    """On torch op by op; elsewhere the first layer that makes NaN or Inf of finite values."""

    def __init__(self, hearing: Hearing) -> None:
        self._hearing = hearing
        self._ops: Any = None
        if backend.name() == "torch":
            from sleuth.adapters.keras.torch_ops import Ops

            self._ops = Ops(hearing)

    @contextmanager
    def listening(self) -> Iterator[None]:
        if self._ops is None:
            yield
            return
        with self._ops.listening():
            yield

    def found(self, tree: Any, step: int) -> Origin | None:
        if self._ops is not None:
            found: Origin | None = self._ops.origin(tree, step)
            return found
        if all(_finite(backend.values(a)) for _, a in leaves(tree, backend.is_array)):
            return None
        return self._first_layer(step)

    def _first_layer(self, step: int) -> Origin | None:
        for made in self._hearing.made:
            if _finite(made.values):
                continue
            if not all(_finite(backend.values(a)) for a in made.given):
                return None  # it came in like that
            ranges = tuple((float(v.min()), float(v.max())) for a in made.given if (v := backend.values(a)).size)
            nans, infs = int(np.isnan(made.values).sum()), int(np.isinf(made.values).sum())
            return Origin(step, made.operation, "forward", made.path or None, ranges, made.location, nans, infs)
        return None


def _finite(values: np.ndarray) -> bool:
    return values.dtype.kind != "f" or bool(np.isfinite(values).all())
