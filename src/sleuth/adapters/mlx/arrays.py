"""MLX arrays in and out. MLX is lazy: whoever asks for values has them computed first, many at once."""

import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

import mlx.core as mx
import numpy as np

from sleuth import kernel
from sleuth.core.runtime.tree import leaves, map_arrays
from sleuth.core.subject import Parts

FILLING = {"Full", "Broadcast", "AsType"}


def is_array(thing: Any) -> bool:
    return isinstance(thing, mx.array)


def is_any_array(thing: Any) -> bool:
    return isinstance(thing, mx.array | np.ndarray)


def values(array: Any) -> np.ndarray:
    if isinstance(array, np.ndarray):
        return array
    return np.array(array.astype(mx.float32) if array.dtype == mx.bfloat16 else array)


def like(values: np.ndarray, array: Any) -> Any:
    if isinstance(array, np.ndarray):
        return np.asarray(values).astype(array.dtype)
    return converted(values, array.dtype)


def converted(given: np.ndarray, dtype: Any) -> mx.array:
    given = np.ascontiguousarray(given)
    if dtype == mx.float64:
        return mx.array(given.astype(np.float64), mx.float64)
    # MLX reads float64 only as float32, and no text, date or object at all.
    return mx.array(given).astype(dtype) if given.dtype != np.float64 else mx.array(given, mx.float32).astype(dtype)


def dtype_name(array: Any) -> str:
    return str(array.dtype).removeprefix("mlx.core.").replace("bool_", "bool")


def measure(arrays: Sequence[Any]) -> np.ndarray:
    if own := [a for a in arrays if is_array(a)]:
        mx.eval(own)
    return kernel.measure([values(a) for a in arrays])


def evaluated(arrays: Iterable[mx.array]) -> list[bool]:
    """Has them computed at once. False: what stands inside a function that MLX is compiling has no values."""
    given = list(arrays)
    try:
        mx.eval(given)
    except (ValueError, RuntimeError):
        return [_is_computed(array) for array in given]
    return [True] * len(given)


def _is_computed(array: mx.array) -> bool:
    try:
        mx.eval(array)
    except (ValueError, RuntimeError):
        return False
    return True


def drawn(array: mx.array) -> str:
    """MLX does not say whether an array is computed, but the graph that it draws of one ends where values are."""
    picture = io.StringIO()
    mx.export_to_dot(picture, array)
    return picture.getvalue()


def has_values(array: mx.array) -> bool:
    """Is it computed already? Nothing is computed for the answer."""
    return "->" not in drawn(array)


def is_made_of_nothing(array: mx.array) -> bool:
    """Zeros that MLX fills in where there is no way from the loss: nothing else stands in the graph."""
    return set(re.findall(r'label ="(\w+)", shape=rectangle', drawn(array))) <= FILLING


def native(batch: Parts, *, wide: bool = False) -> Parts:
    return Parts(*(as_mlx(part, wide=wide) for part in (batch.inputs, batch.target, batch.raw)))


def as_mlx(tree: Any, *, wide: bool = False) -> Any:
    """What a loader gives as NumPy becomes MLX; `wide`: with floats as float64."""

    def convert(array: Any) -> Any:
        if isinstance(array, np.ndarray):
            if array.dtype.kind not in "biufc":
                return array
            array = mx.array(array) if not (wide and array.dtype.kind == "f") else converted(array, mx.float64)
        return array.astype(mx.float64) if wide and mx.issubdtype(array.dtype, mx.floating) else array

    return map_arrays(tree, convert, is_any_array)


def first_array(tree: Any) -> mx.array | None:
    """Of dicts, lists and tuples, without walking through all of it: asked at every step."""
    if isinstance(tree, mx.array):
        return tree
    for child in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list | tuple) else ():
        found = first_array(child)
        if found is not None:
            return found
    return None


def arrays_in(tree: Any) -> list[mx.array]:
    return [array for _, array in leaves(tree, is_array)]


class NotOneNumber(ValueError):
    """A loss that cannot be differentiated."""


def require_scalar(loss: Any) -> None:
    if not is_array(loss) or loss.size != 1:
        got = f"an array of shape {tuple(loss.shape)}" if is_array(loss) else f"a {type(loss).__name__}"
        raise NotOneNumber(f"the loss is not one number but {got}; average it: loss.mean(), or reduction='mean'")
