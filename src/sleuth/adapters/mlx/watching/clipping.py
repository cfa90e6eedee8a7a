"""Whether what `clip_grad_norm` returns reaches the step. It changes nothing in place."""

from typing import Any

import mlx.core as mx

from sleuth.adapters.mlx.arrays import first_array


class Clipping:
    def __init__(self) -> None:
        self._given: mx.array | None = None  # one of the gradients that were clipped
        self._used: mx.array | None = None  # and one that the last step took

    def clipped(self, gradients: Any) -> str:
        """What is to be said of it."""
        first = first_array(gradients)
        if first is not None and first is self._used:
            return "clip-on-used-gradient"
        self._given = first
        return "clip"

    def stepped(self, gradients: Any) -> bool:
        """False: the step takes what stood before the clipping."""
        self._used = first_array(gradients)
        given, self._given = self._given, None
        return given is None or given is not self._used
