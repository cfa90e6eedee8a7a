"""Gradients of code that shows none but changes the weights: what it changes them by, for each unit of the rate."""

from collections.abc import Callable, Mapping

import numpy as np

from sleuth.core.errors import Unsupported

# A step whose every entry has one size follows signs, as Adam's first one does, and no gradient.
SIGNS = 1e-3
# People clip at 1, 5 or 0.25: a size so near to a round number is one by chance in a few hundred cases.
NEAR_ROUND = 1e-4
ROUND = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)


def by_difference(moved: Callable[[float], Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """`moved` tells what a step at this rate takes off each weight, and leaves the weights as they were. Asked twice: only what
    grows with the rate, and does not remember the step before, is a gradient."""
    one = {name: array / 1.0 for name, array in moved(1.0).items()}
    two = {name: array / 2.0 for name, array in moved(2.0).items()}
    for name, array in one.items():
        if not np.allclose(array, two[name], rtol=1e-3, atol=1e-6 * float(np.abs(array).max(initial=0.0)) + 1e-12):
            raise Unsupported("the weights are changed by something else than rate times gradient")
    sizes = np.concatenate([np.abs(array[array != 0]).ravel() for array in one.values()]) if one else np.zeros(0)
    if sizes.size > 1 and float(np.ptp(sizes)) <= SIGNS * float(sizes.max()):
        raise Unsupported("the weights are changed by the signs of gradients, not by gradients")
    if _clipped(one):
        raise Unsupported("the weights are changed by clipped gradients, which are not the loss's own")
    return one


def _clipped(taken: Mapping[str, np.ndarray]) -> bool:
    """All together or one by one to a norm, or entry by entry to a bound that several of them reach."""
    arrays = [array for array in taken.values() if array.any()]
    if not arrays:
        return False
    norms = [float(np.linalg.norm(array)) for array in arrays]
    entries = np.abs(np.concatenate([array.ravel() for array in arrays]))
    bound = float(entries.max())
    at_the_bound = int(np.sum(entries >= bound * (1 - 1e-9)))
    together = _is_round(float(np.linalg.norm(norms)))
    return together or (len(norms) > 1 and all(map(_is_round, norms))) or (at_the_bound > 1 and _is_round(bound))


def _is_round(size: float) -> bool:
    first = size / 10.0 ** np.floor(np.log10(size))
    return any(abs(first - whole) <= NEAR_ROUND * whole for whole in ROUND)
