"""Arrays of whichever backend a model is compiled for: NumPy's here, others' through the adapter of that framework."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sleuth import adapters, kernel

if TYPE_CHECKING:
    from sleuth.core.contract.adapter import Adapter


def is_array(thing: Any) -> bool:
    return isinstance(thing, np.ndarray) or _owner(thing) is not None


def values(array: Any) -> np.ndarray:
    if isinstance(array, np.ndarray):
        return array
    if isinstance(array, np.generic):  # NumPy's functions make a number of an array without axes
        return np.asarray(array)
    owner = _owner(array)
    return np.asarray(array) if owner is None else owner.values(array)


def like(values: np.ndarray, array: Any) -> Any:
    owner = None if isinstance(array, np.ndarray | np.generic) else _owner(array)
    return np.asarray(values).astype(array.dtype) if owner is None else owner.like(values, array)


def dtype(array: Any) -> str:
    owner = None if isinstance(array, np.ndarray) else _owner(array)
    return str(array.dtype) if owner is None else owner.dtype(array)


def device(array: Any) -> str:
    owner = None if isinstance(array, np.ndarray) else _owner(array)
    return "cpu" if owner is None else owner.device(array)


def measure(arrays: Sequence[Any]) -> np.ndarray:
    owner = next((found for a in arrays if not isinstance(a, np.ndarray) and (found := _owner(a)) is not None), None)
    if owner is None:
        return kernel.measure([values(a) for a in arrays])
    return owner.measure([a if owner.is_array(a) else owner.like(values(a), arrays[0]) for a in arrays])


def is_float(array: Any) -> bool:
    return "float" in dtype(array)


def _owner(thing: Any) -> "Adapter | None":
    if isinstance(thing, str | int | float | list | tuple | dict | type | type(None) | np.generic):
        return None
    if not hasattr(thing, "dtype"):  # the arrays of every backend have one
        return None
    own = ("mithril", "numpy")
    return next((a for a in adapters.available() if a.name not in own and a.is_array(thing)), None)
