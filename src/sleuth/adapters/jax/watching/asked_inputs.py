"""Compiled functions that are given the model and take no gradient: what else they are given may be validation data."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from sleuth.adapters.jax.arrays import to_numpy
from sleuth.adapters.jax.watching.gradient_function import is_batch
from sleuth.adapters.listening.recorder import Recorder
from sleuth.core.contract.kept import Group, Passed
from sleuth.core.subject import Parts

if TYPE_CHECKING:
    from sleuth.adapters.jax.watching.listener import JaxListener

MOST_CALLS = 128
MOST_BYTES = 32 << 20


class AskedInputs(Recorder):
    def __init__(self, loop: "JaxListener") -> None:
        self._loop = loop
        self._calls: list[tuple[int, list[Any]]] = []  # after so many steps, with these arrays
        self._seen = self._bytes = 0

    def forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        lane = self._loop.first_lane
        if lane is None:
            return
        self._seen += 1
        if self._seen > MOST_CALLS or self._bytes > MOST_BYTES:
            return
        leaves = [leaf for leaf in jax.tree.leaves((args, kwargs)) if hasattr(leaf, "shape") and hasattr(leaf, "dtype")]
        weights = Counter(zip(lane.shapes, lane.dtypes, strict=True))
        if weights - Counter((tuple(leaf.shape), str(leaf.dtype)) for leaf in leaves):
            return  # not of this model
        found = [leaf for leaf in leaves if is_batch(leaf) and (tuple(leaf.shape), str(leaf.dtype)) not in weights]
        self._bytes += sum(leaf.nbytes for leaf in found)
        if found and self._bytes <= MOST_BYTES:
            self._calls.append((self._loop.steps, [np.array(leaf) if isinstance(leaf, np.ndarray) else leaf for leaf in found]))

    def groups(self, like: Parts) -> tuple[Group, ...]:
        """Those that were given arrays of the form of the model's inputs, with a target where there is one."""
        inputs = like.inputs if isinstance(like.inputs, tuple) else (like.inputs,)
        passed = [p for step, arrays in self._calls if (p := _passed(step, arrays, inputs, like.target)) is not None]
        if not passed:
            return ()
        rounds: Counter[int] = Counter()
        for one in passed:
            rounds[one.step] += len(one.parts.raw[0] if not isinstance(one.parts.inputs, tuple) else one.parts.inputs[0])
        return (Group(passed, max(rounds.values()), of_its_own=False),)


def _passed(step: int, arrays: Sequence[Any], inputs: Sequence[Any], target: Any) -> Passed | None:
    """None where it cannot be told which array is which."""
    if any(getattr(a, "is_deleted", lambda: False)() for a in arrays):
        return None
    left = list(arrays)
    chosen = []
    for wanted in inputs:
        fits = [a for a in left if _is_like(a, wanted)]
        if not fits or (len(fits) > 1 and len(inputs) == 1):
            return None
        chosen.append(fits[0])
        left = [a for a in left if a is not fits[0]]
    size = chosen[0].shape[0]
    found = [a for a in left if target is not None and _is_like(a, target) and a.shape[0] == size]
    own = [to_numpy(a) for a in chosen]
    given = own[0] if len(own) == 1 else tuple(own)
    goal = to_numpy(found[0]) if len(found) == 1 else None
    return Passed(step, Parts(given, goal, (given, goal)))


def _is_like(array: Any, wanted: Any) -> bool:
    kinds = np.dtype(array.dtype).kind == np.dtype(wanted.dtype).kind
    return bool(kinds and len(array.shape) == len(wanted.shape) and array.shape[1:] == wanted.shape[1:])
