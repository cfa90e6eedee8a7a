"""Looking at a model of Keras': each method is filled in by the module of that name.

They are imported where they are called: a watch does not pay for what only instruments need.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import keras
import numpy as np

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.state import preserved
from sleuth.core.contract.adapter import Attends, Credits, Inspects, Routes, Shows
from sleuth.core.contract.inspection import AttentionMap, ClassActivation, Kernels, Maps, Part, Passage, Route
from sleuth.core.errors import UnusableInput
from sleuth.core.subject import Subject

SEED = 0


class KerasInspects(Inspects, Routes, Shows, Credits, Attends):
    def parts(self, model: Any) -> tuple[Part, ...]:
        from sleuth.adapters.keras.inspecting.parts import parts

        return parts(model)

    def made(self, model: Any, shape: tuple[int, ...], dtype: str | None) -> Any:
        first = next((backend.dtype(v) for v in model.weights if "float" in backend.dtype(v)), keras.config.floatx())
        wanted = first if dtype is None else dtype
        try:
            keras.backend.standardize_dtype(wanted)
        except ValueError:
            raise UnusableInput(f"dtype={dtype!r} is not a type of Keras'; give one such as 'float32' or 'int64'.") from None
        values = np.random.default_rng(SEED).standard_normal(shape) if "float" in wanted else np.zeros(shape)
        return keras.ops.convert_to_tensor(values, dtype=wanted)

    def looking(self, source: Any) -> AbstractContextManager[None]:
        return preserved(Subject(None, source))

    def passage(self, model: Any, inputs: Any, *, time: bool = False, as_is: bool = False) -> Passage:
        from sleuth.adapters.keras.inspecting.forward_pass import passage

        return passage(model, inputs, timed=time, as_is=as_is)

    def route(self, model: Any, inputs: Any) -> Route:
        from sleuth.adapters.keras.inspecting.operation_graph import route

        return route(model, inputs)

    def kernels(self, model: Any, layer: str | None) -> Kernels:
        from sleuth.adapters.keras.inspecting.maps import kernels

        return kernels(model, layer)

    def maps(self, model: Any, inputs: Any, layers: Sequence[str]) -> tuple[Maps, ...]:
        from sleuth.adapters.keras.inspecting.maps import maps

        return maps(model, inputs, layers)

    def class_activation(self, model: Any, inputs: Any, layer: str | None, target: int | Sequence[int] | None) -> ClassActivation:
        from sleuth.adapters.keras.inspecting.class_activation import class_activation

        return class_activation(model, inputs, layer, target)

    def attention(self, model: Any, inputs: Any) -> tuple[AttentionMap, ...]:
        from sleuth.adapters.keras.inspecting.attention import attention

        return attention(model, inputs)
