"""A look as NumPy's arrays, and the observations that are made of it off the training thread."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from sleuth import kernel
from sleuth.adapters.mlx.activity import activity
from sleuth.adapters.mlx.arrays import dtype_name, is_any_array, is_array, values
from sleuth.adapters.mlx.loss_calls import heard_calls, number_of
from sleuth.adapters.mlx.pass_listener import HeardLoss, Made
from sleuth.core.observation import Accumulation, Frame, LossCall, Observation, Part, Precision, Predictions, Role, Split
from sleuth.core.runtime.tree import map_arrays

# What a factor may leave over, as a share of the sum.
ROUNDING = 1e-3
Arrays = Mapping[str, np.ndarray]


class Backward(NamedTuple):
    """One of several that feed a step."""

    loss: Any
    heard: list[HeardLoss]
    path: str
    gradient: Any  # of the smallest parameter: it stands for all


def backward_of(loss: Any, heard: list[HeardLoss], gradients: Mapping[str, Any]) -> Backward | None:
    path = min(gradients, key=lambda p: gradients[p].size, default=None)
    return None if path is None else Backward(loss, heard, path, gradients[path])


class Copies:
    """Every array is copied once: what was one array before is one afterwards."""

    def __init__(self) -> None:
        self._known: dict[int, np.ndarray] = {}
        self.bytes = 0

    def of(self, tree: Any) -> Any:
        return map_arrays(tree, self._copy, lambda thing: isinstance(thing, mx.array | nn.Module))

    def of_made(self, made: Sequence[Made]) -> list[Made]:
        """Of what a layer was given, that which another one has made; of anything else only the size is asked."""
        for one in made:
            self._copy(one.array)
        return [
            replace(m, array=self._copy(m.array), given=tuple(map(self._given, m.given)), dtype=dtype_name(m.array)) for m in made
        ]

    def _copy(self, array: Any) -> Any:
        if not is_array(array):  # a module: nothing of the user's is held
            return None
        found = self._known.get(id(array))
        if found is None:
            found = self._known[id(array)] = values(array)
            self.bytes += found.nbytes
        return found

    def _given(self, array: Any) -> np.ndarray:
        found = self._known.get(id(array))
        return np.broadcast_to(np.float32(0), tuple(array.shape)) if found is None else found


@dataclass(frozen=True)
class LookCopy:
    step: int
    optimiser: int
    made: list[Made]
    losses: list[list[HeardLoss]]  # of each backward
    loss: np.ndarray | None
    raw: Arrays  # gradients as they were taken
    gradients: Arrays  # as the step used them
    before: Arrays
    after: Arrays
    parts: list[Backward]
    bytes: int

    def observations(self) -> Iterator[Observation]:
        """Off the training thread."""
        yield from self._accumulation()
        yield from activity(self.made, self.step)
        calls = [] if self.loss is None else [c for heard in self.losses for c in heard_calls(heard, self.loss, self.made)]
        yield from calls
        yield from self._predictions(calls)
        for role, arrays in ((Role.GRADIENT, self.gradients), (Role.WEIGHT, self.before), (Role.UPDATE, self._changes())):
            if arrays:
                yield Frame(self.step, role, tuple(arrays), kernel.measure(list(arrays.values())))
        yield Precision(self.step, {m.path: m.dtype for m in self.made})

    def _changes(self) -> Arrays:
        both = (path for path in self.before if path in self.after)
        with np.errstate(invalid="ignore", over="ignore"):
            return {path: self.after[path] - self.before[path] for path in both}

    def _predictions(self, calls: Sequence[LossCall]) -> Iterator[Predictions]:
        """Where one loss takes one class a sample."""
        heard = [h for losses in self.losses for h in losses]
        if len(heard) != 1 or len(calls) != 1 or calls[0].family not in ("cross-entropy", "nll"):
            return
        arrays = [a for a in (*heard[0].args, *heard[0].kwargs.values()) if is_any_array(a)]
        if len(arrays) < 2 or arrays[0].ndim != 2 or arrays[1].ndim != 1:
            return
        named, right = arrays[0].argmax(-1), arrays[1].astype(np.int64)
        predicted, wanted = (dict(Counter(classes.tolist())) for classes in (named, right))
        classes, same = arrays[0].shape[-1], int((named == right).sum())
        yield Predictions(self.step, Split.TRAIN, classes, predicted, wanted, same, calls[0].location)

    def _accumulation(self) -> Iterator[Accumulation]:
        """In MLX the user adds gradients up by hand, and divides the sum rather than the losses: that is told as if each loss had
        been divided."""
        parts = self.parts
        if len(parts) < 2 or len({p.path for p in parts}) > 1 or parts[0].path not in self.gradients:
            return
        factor = _factor(self.gradients[parts[0].path], np.stack([p.gradient for p in parts]).sum(0, np.float64))
        told = tuple(self._part(p, 1.0 if factor is None else factor) for p in parts)
        yield Accumulation(self.step, told, len(parts), touched=factor is None, optimiser=self.optimiser, by_hand=True)

    def _part(self, part: Backward, factor: float) -> Part:
        value = number_of(part.loss)
        calls = list(heard_calls(part.heard, part.loss, self.made))
        scaled = None if value is None else value * factor
        if len(calls) != 1:
            return Part(scaled, None)
        call = calls[0]
        target = call.argument("target")
        told = () if target is None else (target.facts.statistics.min, target.facts.statistics.max, target.facts.statistics.mean)
        return Part(scaled, call.returned, call.name, call.reduction, told, call.location)


def _factor(used: np.ndarray, total: np.ndarray) -> float | None:
    """used = factor · total; None: something else was done to it."""
    size = float((total * total).sum())
    if not np.isfinite(size) or size == 0 or used.shape != total.shape:
        return None
    factor = float((used * total).sum() / size)
    left = float(np.abs(used - factor * total).max())
    # One of the parts alone is not their sum.
    return factor if factor and left <= ROUNDING * float(np.abs(used).max()) else None
