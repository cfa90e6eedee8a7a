"""Does the output of one sample move when another sample is exchanged?"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sleuth.core.runtime.tree import leaves
from sleuth.probes.lab.changed_inputs import Outputs, Rerun, changed, input_arrays, rms, spread

# Rounding of single precision, relative to the spread, in a deep model; half precision may be a hundred times worse.
MOVED = 1e-3
# Reordering sums rounds otherwise.
REORDERED = 1e-3


class Unclear(Exception):
    """Which part of an output belongs to which sample cannot be told; the message says why."""


@dataclass(frozen=True)
class Layout:
    """Where an output keeps its samples: along `axis`, `repeats` entries a sample, one after the other or strided."""

    axis: int
    repeats: int
    strided: bool = False

    def by_sample(self, values: np.ndarray, samples: int) -> np.ndarray:
        first = np.moveaxis(values, self.axis, 0)
        if self.strided:
            return np.moveaxis(first.reshape(self.repeats, samples, -1), 1, 0).reshape(samples, -1)
        return first.reshape(samples, -1)


def mixing(rerun: Rerun, base: Outputs, samples: int, *, of_one_size: bool = False) -> tuple[float, float, int, bool | None]:
    """(change of the exchanged sample, largest change of another, how many moved, does reordering only reorder)."""
    given = input_arrays(rerun.lab, rerun.batch.inputs)
    odd = next((p for p, v in given.items() if v.ndim and v.shape[0] != samples), None)
    if odd is not None:
        raise Unclear(f"the input {odd} has no axis of {samples} samples, so samples cannot be told apart")
    if samples < 3:
        raise Unclear("it takes a batch of at least three samples")
    layouts = _by_size(base, samples) if of_one_size else _layouts(rerun, base, samples)
    moves = list(_exchange_one(rerun, base, samples, given))
    if not moves:
        raise Unclear("all samples of the batch are the same, so there is nothing to exchange")
    worst = [_judge(base[path], [(j, other[path]) for j, other in moves], options, samples) for path, options in layouts.items()]
    own, mixed, count = max(worst, key=lambda w: w[1])
    if mixed <= MOVED:
        return own, mixed, count, None
    _exclude_time_first(rerun, base, given)
    return own, mixed, count, _equivariant(rerun, base, samples, layouts)


def _by_size(base: Outputs, samples: int) -> dict[str, list[Layout]]:
    """Where no batch of another size can be asked: an axis as long as the batch, if no other could be taken for it."""
    found = {path: [a for a, n in enumerate(v.shape) if n % samples == 0] for path, v in base.items()}
    fits = {path: [Layout(axes[0], 1)] for path, axes in found.items() if len(axes) == 1 and base[path].shape[axes[0]] == samples}
    if not fits:
        raise Unclear("which axis of the outputs is that of the samples cannot be told")
    return fits


def _layouts(rerun: Rerun, base: Outputs, samples: int) -> dict[str, list[Layout]]:
    """Found by leaving one sample out: the axis that shrinks in proportion is the samples'."""
    fewer = samples - 1
    try:
        less = rerun(changed(rerun.lab, rerun.batch.inputs, lambda path, v: v[:fewer] if v.ndim else v))
    except (ValueError, RuntimeError, IndexError, AssertionError, TypeError):
        raise Unclear("the model does not take a batch of another size, so samples cannot be told apart") from None
    found: dict[str, list[Layout]] = {}
    for path, values in base.items():
        if path not in less or less[path].ndim != values.ndim:
            continue
        sizes = zip(values.shape, less[path].shape, strict=True)
        axes = [a for a, (n, m) in enumerate(sizes) if n != m and n % samples == 0 and m * samples == n * fewer]
        if len(axes) == 1:
            repeats = values.shape[axes[0]] // samples
            found[path] = [Layout(axes[0], repeats)] + ([Layout(axes[0], repeats, strided=True)] if repeats > 1 else [])
    if not found:
        raise Unclear("no output has an axis of samples")
    return found


def _exchange_one(rerun: Rerun, base: Outputs, samples: int, given: dict[str, np.ndarray]) -> Iterator[tuple[int, Outputs]]:
    """First, middle and last sample in turn become a copy of their neighbour: real values, with mask and length that fit."""
    for j in sorted({0, samples // 2, samples - 1}):
        k = next((i % samples for i in range(j + 1, j + samples) if _unlike(given, j, i % samples)), None)
        if k is None:
            continue

        def put(path: str, values: np.ndarray, j: int = j, k: int = k) -> np.ndarray:
            copy = values.copy()
            if copy.ndim:
                copy[j] = copy[k]
            return copy

        other = rerun(changed(rerun.lab, rerun.batch.inputs, put))
        if any(other[path].shape != base[path].shape for path in base if path in other) or other.keys() != base.keys():
            raise Unclear("the shape of the outputs depends on the values of the inputs")
        yield j, other


def _unlike(given: dict[str, np.ndarray], j: int, k: int) -> bool:
    return any(not np.array_equal(v[j], v[k]) for v in given.values() if v.ndim)


def _judge(
    base: np.ndarray, moves: list[tuple[int, np.ndarray]], layouts: list[Layout], samples: int
) -> tuple[float, float, int]:
    """Under the layout that mixes least: samples that can be told apart in some way do not mix."""
    results = []
    for layout in layouts:
        start = layout.by_sample(base, samples)
        scale = spread(start)
        own, others, moved = [], 0.0, 0
        for j, values in moves:
            change = np.array([rms(row) for row in layout.by_sample(values, samples) - start]) / scale
            own.append(change[j])
            rest = np.delete(change, j)
            others, moved = max(others, float(rest.max())), max(moved, int(np.count_nonzero(rest > MOVED)))
        results.append((float(np.median(own)), others, moved))
    return min(results, key=lambda r: r[1])


def _exclude_time_first(rerun: Rerun, base: Outputs, given: dict[str, np.ndarray]) -> None:
    """Raises Unclear where the second axis may be the samples' and the first one time, as in (length, batch, features)."""
    shapes = {v.shape[:2] for v in given.values() if v.ndim >= 2}
    if len(shapes) != 1 or any(v.ndim < 2 for v in given.values()):
        return
    length, width = shapes.pop()
    target = next((rerun.lab.adapter.values(a) for _, a in leaves(rerun.batch.target, rerun.lab.adapter.is_array)), None)
    first_axis = [next(iter(input_arrays(rerun.lab, b.inputs).values())).shape[:2] for b in rerun.lab.train.batches]
    only_first_varies = len({s[0] for s in first_axis}) > 1 and len({s[1] for s in first_axis}) == 1
    a_target_each = (
        target is not None and (target.ndim == 1 or (target.ndim == 2 and target.shape[1] == 1)) and len(target) == length
    )
    if (a_target_each and length != width) or only_first_varies or width < 2:
        return
    if not _moves_across_second(rerun, base, width):
        raise Unclear("the second axis of the inputs may be the samples' and the first one time; outputs do not mix along it")


def _moves_across_second(rerun: Rerun, base: Outputs, width: int) -> bool:
    def put(path: str, values: np.ndarray) -> np.ndarray:
        copy = values.copy()
        copy[:, 0] = copy[:, 1]
        return copy

    other = rerun(changed(rerun.lab, rerun.batch.inputs, put))
    for path, values in base.items():
        axis = next((a for a in (1, 0) if values.ndim > a and values.shape[a] == width), None)
        if axis is None or other[path].shape != values.shape:
            return True
        change = np.moveaxis(other[path] - values, axis, 0)[1:]
        if rms(change) > MOVED * spread(values):
            return True
    return False


def _equivariant(rerun: Rerun, base: Outputs, samples: int, layouts: dict[str, list[Layout]]) -> bool:
    order = rerun.lab.rng.permutation(samples)
    other = rerun(changed(rerun.lab, rerun.batch.inputs, lambda path, v: v[order] if v.ndim else v))
    for path, options in layouts.items():
        rows = options[0].by_sample(base[path], samples)
        if rms(options[0].by_sample(other[path], samples) - rows[order]) > REORDERED * spread(rows):
            return False
    return True
