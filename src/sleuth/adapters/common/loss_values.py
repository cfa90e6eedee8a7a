"""What is said of the arrays that a loss is given, in every framework."""

import numpy as np

from sleuth import kernel
from sleuth.core.observation import ArrayFacts
from sleuth.core.statistics import Statistics

# For a loss that raised: only its name is left to go by, and only shapes are judged.
NAMES = (
    ("bce", ("bce", "binarycrossentropy")),
    ("cross-entropy", ("crossentropy", "crossentropyloss")),
    ("nll", ("nll", "negativeloglikelihood")),
    ("mse", ("mse", "meansquarederror", "squarederror", "l2loss")),
    ("l1", ("l1", "mae", "meanabsoluteerror")),
    ("huber", ("huber", "smoothl1")),
)


def family_of_name(name: str) -> str:
    plain = name.lower().replace("_", "")
    return next((family for family, words in NAMES if any(word in plain for word in words)), "other")


def broadcast_of(output: np.ndarray, target: np.ndarray) -> tuple[int, ...] | None:
    try:
        shape = np.broadcast_shapes(output.shape, target.shape)
    except ValueError:
        return None
    return shape if np.prod(shape) > max(output.size, target.size) else None


def array_facts(path: str, array: np.ndarray) -> ArrayFacts:
    finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array
    whole = float(np.mean(finite == np.floor(finite))) if finite.size and array.dtype.kind in "fiu" else float(finite.size > 0)
    return ArrayFacts(path, array.shape, str(array.dtype), Statistics.from_row(kernel.measure([array])[0]), whole)
