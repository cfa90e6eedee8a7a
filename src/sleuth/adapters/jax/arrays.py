"""Arrays of JAX and of NumPy: batches may hold either, and NumPy's stay what they are."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sleuth import kernel
from sleuth.core.observation import ArrayFacts
from sleuth.core.statistics import Statistics


def is_array(thing: Any) -> bool:
    """Random keys are arrays to JAX and have no values to look at."""
    return isinstance(thing, np.ndarray) or (isinstance(thing, jax.Array) and not is_key(thing))


def is_key(thing: Any) -> bool:
    return isinstance(thing, jax.Array) and jnp.issubdtype(thing.dtype, jax.dtypes.prng_key)


def to_numpy(array: Any) -> np.ndarray:
    values = np.asarray(array)
    # bfloat16 and the float8s are types that NumPy's functions do not know.
    return values.astype(np.float32) if values.dtype.kind == "V" or values.dtype.type.__module__ != "numpy" else values


def like(values: np.ndarray, array: Any) -> Any:
    if isinstance(array, np.ndarray):
        return np.asarray(values).astype(array.dtype)
    return jax.device_put(np.asarray(values).astype(array.dtype), next(iter(array.devices())))


def device(array: Any) -> str:
    if isinstance(array, np.ndarray):
        return "cpu"
    return ", ".join(sorted({d.platform if d.platform == "cpu" else f"{d.platform}:{d.id}" for d in array.devices()}))


def measure(arrays: Sequence[Any]) -> np.ndarray:
    return kernel.measure([to_numpy(a) for a in jax.device_get(list(arrays))])


def array_facts(path: str, array: Any) -> ArrayFacts:
    values = to_numpy(array)
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    whole = float(np.mean(finite == np.floor(finite))) if finite.size and values.dtype.kind in "fiu" else float(finite.size > 0)
    return ArrayFacts(
        path, values.shape, str(array.dtype), Statistics.from_row(kernel.measure([values])[0]), whole, device(array)
    )
