"""What the weights of an attention are in every framework: rows that sum to one, for each sample and head."""

from collections.abc import Sequence

import numpy as np

from sleuth.core.errors import UnusableInput

# Of one forward pass, in memory: (8, 12, 1024, 1024) takes 400 MB.
MOST_BYTES = 1 << 30
# Rounding of so many steps of the precision, in a sum of weights that are rounded one by one; at the least what float32 loses.
ROUNDED, LEAST = 4.0, 1e-4


def require_room(shapes: Sequence[tuple[int, ...]]) -> None:
    """Weights are handed out in float32."""
    if sum(4 * int(np.prod(shape)) for shape in shapes) > MOST_BYTES:
        raise UnusableInput("the attention weights take more than 1 GB: give fewer samples, or shorter sequences.")


def are_weights(values: np.ndarray, step: float) -> bool:
    """Along the last axis. A row that may look at nothing is zero, or not a number. `step`: of their precision, at 1."""
    sums, near = values.sum(axis=-1), max(LEAST, ROUNDED * step)
    nothing = np.isnan(sums) | ~values.any(axis=-1)
    inside = np.isnan(values) | ((values >= 0) & (values <= 1 + near))
    return bool(inside.all() and (nothing | (abs(sums - 1) <= near)).all() and not nothing.all())


def by_heads(weights: np.ndarray) -> np.ndarray:
    """(samples, heads, queries, keys), of what stands so already or has no axis for heads."""
    return weights.reshape(-1, *weights.shape[-3:]) if weights.ndim >= 4 else weights[:, None]
