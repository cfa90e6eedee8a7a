"""The backend that Keras was started with, and arrays as it has them."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np

from sleuth import kernel
from sleuth.core.errors import UnusableInput

KNOWN = ("torch", "jax")
Value = Any  # an array of the backend


def name() -> str:
    return str(keras.backend.backend())


def require_known() -> None:
    if name() not in KNOWN:
        raise UnusableInput(
            f"Keras runs on {name()} here, and sleuth reads Keras on {' and '.join(KNOWN)}: set KERAS_BACKEND=torch, or jax, "
            "before keras is imported."
        )


def _types() -> Iterator[type]:
    yield from (np.ndarray, keras.Variable)
    if "torch" in sys.modules:
        yield sys.modules["torch"].Tensor
    if "jax" in sys.modules:
        yield sys.modules["jax"].Array


# The backend is imported with Keras, and cannot be changed afterwards.
TYPES = tuple(_types())


def is_array(thing: Any) -> bool:
    return isinstance(thing, TYPES)


def is_tensor(thing: Any) -> bool:
    """Of the backend, with values: neither symbolic nor NumPy's."""
    return is_array(thing) and not isinstance(thing, np.ndarray | keras.Variable)


def values(array: Any) -> np.ndarray:
    if isinstance(array, np.ndarray):
        return array
    array = array.value if isinstance(array, keras.Variable) else array
    if hasattr(array, "detach"):
        array = array.detach().cpu()
        return (array.float() if str(array.dtype) in ("torch.bfloat16",) else array).numpy()
    found = np.asarray(array)
    return found if found.dtype.kind in "biufcSUOM" else found.astype(np.float32)  # bfloat16 and the like


def like(values: np.ndarray, array: Any) -> Any:
    if isinstance(array, np.ndarray):
        return np.asarray(values).astype(array.dtype)
    made = keras.ops.convert_to_tensor(np.ascontiguousarray(values), dtype=dtype(array))
    return made.to(array.device) if hasattr(array, "detach") else made


def dtype(array: Any) -> str:
    return str(array.dtype).removeprefix("torch.")


def device(array: Any) -> str:
    array = array.value if isinstance(array, keras.Variable) else array
    return "cpu" if isinstance(array, np.ndarray) else str(getattr(array, "device", "cpu"))


def measure(arrays: Sequence[Any]) -> np.ndarray:
    return kernel.measure([values(array) for array in arrays])


def native(array: Any) -> Any:
    """As the model is given it: NumPy arrays become the backend's, whole numbers stay whole."""
    return keras.ops.convert_to_tensor(array) if isinstance(array, np.ndarray) and array.dtype.kind in "biufc" else array
