"""Looking at a model of MLX: each method is filled in by the module of that name.

They are imported where they are called: a watch does not pay for what only instruments need.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from sleuth.adapters.mlx import state
from sleuth.adapters.mlx.arrays import converted
from sleuth.adapters.mlx.model_parts import parameters
from sleuth.core.contract.adapter import Attends, Credits, Inspects, Routes, Shows
from sleuth.core.contract.inspection import AttentionMap, ClassActivation, Kernels, Maps, Part, Passage, Route
from sleuth.core.errors import UnusableInput
from sleuth.core.subject import Subject

SEED = 0


class MlxInspects(Inspects, Routes, Shows, Credits, Attends):
    def parts(self, model: Any) -> tuple[Part, ...]:
        from sleuth.adapters.mlx.inspecting.parts import parts

        return parts(model)

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

    def passage(self, model: Any, inputs: Any, *, time: bool = False, as_is: bool = False) -> Passage:
        from sleuth.adapters.mlx.inspecting.forward_pass import passage

        return passage(model, inputs, timed=time, as_is=as_is)

    def route(self, model: Any, inputs: Any) -> Route:
        from sleuth.adapters.mlx.inspecting.forward_pass import route

        return route(model, inputs)

    def kernels(self, model: Any, layer: str | None) -> Kernels:
        from sleuth.adapters.mlx.inspecting.maps import kernels

        return kernels(model, layer)

    def maps(self, model: Any, inputs: Any, layers: Sequence[str]) -> tuple[Maps, ...]:
        from sleuth.adapters.mlx.inspecting.maps import maps

        return maps(model, inputs, layers)

    def class_activation(self, model: Any, inputs: Any, layer: str | None, target: int | Sequence[int] | None) -> ClassActivation:
        from sleuth.adapters.mlx.inspecting.class_activation import class_activation

        return class_activation(model, inputs, layer, target)

    def attention(self, model: Any, inputs: Any) -> tuple[AttentionMap, ...]:
        from sleuth.adapters.mlx.inspecting.attention import attention

        return attention(model, inputs)
