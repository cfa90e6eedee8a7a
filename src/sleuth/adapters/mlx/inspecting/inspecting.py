"""What the instruments ask of a model of MLX: the modules beside this one answer."""

from contextlib import AbstractContextManager
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from sleuth.adapters.common.inspecting.by_module import InspectsByModule
from sleuth.adapters.mlx import state
from sleuth.adapters.mlx.arrays import converted
from sleuth.adapters.mlx.model_parts import parameters
from sleuth.core.contract.inspection import Route
from sleuth.core.errors import UnusableInput
from sleuth.core.subject import Subject

SEED = 0


class MlxInspects(InspectsByModule):
    def made(self, model: Any, shape: tuple[int, ...], dtype: str | None) -> Any:
        floats = (e.array.dtype for e in parameters(model) if mx.issubdtype(e.array.dtype, mx.floating))
        wanted = next(floats, mx.float32) if dtype is None else getattr(mx, dtype, None)
        if not isinstance(wanted, mx.Dtype):
            raise UnusableInput(f"dtype={dtype!r} is not a type of MLX's; give one such as 'float32' or 'int32'.")
        if not mx.issubdtype(wanted, mx.floating):
            return mx.zeros(shape, wanted)
        return converted(np.random.default_rng(SEED).normal(size=shape).astype(np.float32), wanted)

    def looking(self, source: Any) -> AbstractContextManager[None]:
        return state.preserved(Subject(nn.Module(), source))

    def route(self, model: Any, inputs: Any) -> Route:
        return self._module("forward_pass").route(model, inputs)
