"""The function that a gradient is taken of, as a program of arrays: it can be run again when the training is over."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sleuth.adapters.jax.watching.inlined_jaxpr import laid_open
from sleuth.core.location import Location


@dataclass(frozen=True, eq=False)
class Learned:
    """Its inputs are numbered. Static: it travels with the compiled step."""

    closed: Any  # without constants
    names: tuple[tuple[str, ...], ...]  # of the weights
    weights: tuple[int, ...]  # inputs, in the order of their names
    passed: tuple[int, ...]  # inputs that come with each step, as they leave it
    fixed: dict[int, Any] = field(default_factory=dict)  # the others: constants
    place: Location | None = None  # where the gradient is taken

    @property
    def data(self) -> tuple[int, ...]:
        return tuple(i for i in self.passed if i not in set(self.weights))


def learned(
    jaxpr: Any,
    given: Sequence[Any],
    by: Sequence[bool],
    names: tuple[tuple[str, ...], ...],
    place: Location | None,
    *,
    everything: bool = False,
) -> tuple[Learned, list[Any]] | None:
    """With the values that come with each step. `given`: of all inputs, constants first; `by`: the gradient is taken by these."""
    if jaxpr.effects:
        return None
    weights = tuple(i for i, (wanted, array) in enumerate(zip(by, given, strict=True)) if wanted and _is_weight(array))
    if len(weights) != len(names):
        return None
    passed = tuple(i for i, a in enumerate(given) if everything or isinstance(a, jax.core.Tracer) or i in set(weights))
    fixed = {i: array for i, array in enumerate(given) if i not in set(passed)}
    found = Learned(laid_open(jaxpr), names, weights, passed, fixed, place)
    return found, [given[i] for i in passed]


def _is_weight(array: Any) -> bool:
    return bool(jnp.issubdtype(array.dtype, jnp.floating))


def is_batch(array: Any) -> bool:
    """May it hold samples? Random keys and single numbers do not."""
    dtype = getattr(array, "dtype", None)
    if dtype is None or not getattr(array, "shape", ()) or jnp.issubdtype(dtype, jax.dtypes.prng_key):
        return False
    return dtype != np.uint32 and array.size > 0
