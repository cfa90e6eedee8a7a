"""Gradients of code that shows none but changes the weights: what it changes them by, for each unit of the rate."""

from collections.abc import Callable, Mapping

import numpy as np

from sleuth.core.errors import Unsupported

# A step whose every entry has one size follows signs, as Adam's first one does, and no gradient.
SIGNS = 1e-3


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
    return one
