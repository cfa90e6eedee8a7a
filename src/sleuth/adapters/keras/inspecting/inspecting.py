"""What the instruments ask of a model of Keras: the modules beside this one answer."""

from contextlib import AbstractContextManager
from typing import Any

import keras
import numpy as np

from sleuth.adapters.common.inspecting.by_module import InspectsByModule
from sleuth.adapters.keras import backend
from sleuth.adapters.keras.state import preserved
from sleuth.core.errors import UnusableInput
from sleuth.core.subject import Subject

SEED = 0


class KerasInspects(InspectsByModule):
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
