"""The bench in float64."""

from collections.abc import Callable
from typing import Any

import mlx.core as mx

from sleuth.adapters.mlx import float64
from sleuth.adapters.mlx.arrays import arrays_in, as_mlx
from sleuth.adapters.mlx.bench import MlxBench
from sleuth.core.contract.adapter import Gradients
from sleuth.core.errors import Unsupported
from sleuth.core.subject import Parts


class WideBench(MlxBench):
    """In float64: every floating input and target is widened on its way in."""

    wide = True
    _is_exact = False

    def _require_exact(self, compute: Callable[[], mx.array]) -> None:
        if self._is_exact:
            return
        before = self.snapshot()
        try:
            found = float64.inexact_operations(compute)
        finally:
            self.restore(before)
        if found:
            raise Unsupported(f"MLX computes {' and '.join(found)} in float64 to the accuracy of float32 only")
        self._is_exact = True

    def forward(self, inputs: Any) -> Any:
        with float64.in_earnest():
            self._require_exact(lambda: arrays_in(super(WideBench, self).call(as_mlx(inputs, wide=True)))[0])
            return super().forward(inputs)

    def loss(self, batch: Parts) -> float:
        with float64.in_earnest():
            self._require_exact(lambda: self.compute(batch))
            return super().loss(batch)

    def gradients(self, batch: Parts) -> Gradients:
        with float64.in_earnest():
            self._require_exact(lambda: self.compute(batch))
            return super().gradients(batch)
