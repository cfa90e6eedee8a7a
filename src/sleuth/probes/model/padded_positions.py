"""Finds padding: runs of one and the same input at one end of samples of different length, and one target beside them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

# A sample that really ends in a few equal values is no padding; padded sets have many short samples.
LEAST_PADDED_SAMPLES = 0.2
# Lengths differ: an end mark stands once in every sample, padding here twice and there not at all.
LEAST_LENGTHS = 3
# Nothing but padding: a blank, a pause or a background stands between other values too.
MOST_INSIDE = 0.01
# Two different inputs are a mask or a switch, not data that could be padded.
LEAST_INPUTS = 3
# Targets at padded positions that may differ, as where one batch was padded otherwise.
MOST_OTHER_TARGETS = 0.01
# A target that nearly all positions have is an answer for padding as well as for everything else.
MOST_COMMON = 0.98
# Shorter samples have no room for padding.
SHORTEST = 3


@dataclass(frozen=True)
class Pair:
    """Inputs (rows, columns, features) and targets (rows, columns, numbers) that stand beside each other, of one batch."""

    inputs: np.ndarray
    targets: np.ndarray


@dataclass(frozen=True)
class Reading:
    """How to look at a batch: positions along the rows or the columns, padding at their end or their beginning."""

    by_columns: bool
    at_end: bool

    def turn(self, array: np.ndarray) -> np.ndarray:
        """(samples, positions, …), with the padding last. Turning a mask twice brings it back."""
        turned = array.swapaxes(0, 1) if self.by_columns else array
        return turned if self.at_end else turned[:, ::-1]

    def turn_back(self, array: np.ndarray) -> np.ndarray:
        straight = array if self.at_end else array[:, ::-1]
        return straight.swapaxes(0, 1) if self.by_columns else straight


READINGS = tuple(Reading(by_columns, at_end) for by_columns in (False, True) for at_end in (True, False))


@dataclass(frozen=True)
class Padded:
    """`masks`: by batch, (rows, columns), True where the target is padding."""

    masks: list[np.ndarray]
    target: np.ndarray  # what stands there, one number or several
    shown_by: np.ndarray  # the input that stands there
    also_real: bool  # that target stands at real positions too


def pairs(inputs: Iterable[np.ndarray], targets: Iterable[np.ndarray]) -> Iterator[Pair]:
    """Every input of a batch beside every target with as many positions."""
    targets = [t for t in targets if t.ndim and t.dtype.kind in "biuf"]
    for values in inputs:
        for frames in _frames(values):
            rows, columns = frames.shape[:2]
            for target in targets:
                if target.ndim in (2, 3) and target.shape[:2] == (rows, columns):
                    yield Pair(frames, target.reshape(rows, columns, -1))
                elif target.shape in ((rows * columns,), (rows * columns, 1)) and min(rows, columns) > 1:
                    yield Pair(frames, target.reshape(rows, columns, 1))


def _frames(values: np.ndarray) -> Iterator[np.ndarray]:
    """(rows, columns, features): sequences as they come, and signals with their channels before their length."""
    if values.ndim in (2, 3) and values.dtype.kind in "biuf":
        yield values.reshape(*values.shape[:2], -1)
        if values.ndim == 3 and values.shape[1] != values.shape[2]:
            yield values.swapaxes(1, 2)


def find_padding(batches: list[Pair]) -> Padded | None:
    for reading in READINGS:
        turned = [Pair(reading.turn(b.inputs), reading.turn(b.targets)) for b in batches]
        masks = runs([b.inputs for b in turned])
        found = None if masks is None else _with_targets(turned, masks)
        if found is not None:
            return replace(found, masks=[reading.turn_back(m) for m in found.masks])
    return None


def find_padding_apart(sides: list[tuple[list[np.ndarray], list[np.ndarray]]]) -> Padded | None:
    """Inputs and targets of different length, as in translation, that end in one and the same id."""
    for inputs, targets in zip(_ids([i for i, _ in sides]), _ids([t for _, t in sides]), strict=False):
        ends, masks = runs(inputs), runs(targets)
        if ends is None or masks is None:
            continue
        pad, other = _at(targets, masks), _at(inputs, ends)
        if pad == other:
            return Padded(masks, pad, other, also_real=False)
    return None


def _ids(sides: list[list[np.ndarray]]) -> list[list[np.ndarray]]:
    """The first sequence of ids of each batch, as (samples, positions, 1); nothing where a batch has none."""
    found = [[a[..., None] for a in side if a.ndim == 2 and a.dtype.kind in "iu"][:1] for side in sides]
    return [[arrays[0] for arrays in found]] if all(found) else []


def _at(arrays: list[np.ndarray], masks: list[np.ndarray]) -> np.ndarray:
    return next(np.asarray(a[m][0]) for a, m in zip(arrays, masks, strict=True) if m.any())


def runs(inputs: list[np.ndarray]) -> list[np.ndarray] | None:
    """Where samples (samples, positions, features) end in padding; None where they do not."""
    if min(a.shape[1] for a in inputs) < SHORTEST:
        return None
    pad = _commonest([a[:, -1] for a in inputs])
    if not _can_pad(pad):
        return None
    equal = [(a == pad).all(axis=-1) for a in inputs]
    masks = [np.logical_and.accumulate(e[:, ::-1], axis=1)[:, ::-1] for e in equal]
    lengths = np.concatenate([m.sum(axis=1) for m in masks])
    inside = sum(int(np.sum(e & ~m)) for e, m in zip(equal, masks, strict=True))
    ends = (lengths > 0).mean() >= LEAST_PADDED_SAMPLES and len(np.unique(lengths)) >= LEAST_LENGTHS
    if not ends or inside > MOST_INSIDE * lengths.sum() or not _varies(inputs):
        return None
    return masks


def _can_pad(value: np.ndarray) -> bool:
    """A single number that stays where it is may be a curve that has reached its end; nobody pads with 1 or 0.37."""
    return value.dtype.kind != "f" or len(value) > 1 or bool(value[0] <= 0 and value[0] == np.floor(value[0]))


def _commonest(rows: list[np.ndarray]) -> np.ndarray:
    values, counts = np.unique(np.concatenate(rows), axis=0, return_counts=True)
    return np.asarray(values[np.argmax(counts)])


def _varies(inputs: list[np.ndarray]) -> bool:
    return len(np.unique(np.concatenate([a.reshape(-1, a.shape[-1])[:4096] for a in inputs[:4]]), axis=0)) >= LEAST_INPUTS


def _with_targets(batches: list[Pair], masks: list[np.ndarray]) -> Padded | None:
    beside = [b.targets[m] for b, m in zip(batches, masks, strict=True)]
    target = _commonest(beside)
    same = [(b.targets == target).all(axis=-1) for b in batches]
    count = sum(len(b) for b in beside)
    padded = [s & m for s, m in zip(same, masks, strict=True)]
    real = [s[~m] for s, m in zip(same, masks, strict=True)]
    others = count - sum(int(p.sum()) for p in padded)
    everywhere = sum(int(r.sum()) for r in real) > MOST_COMMON * sum(len(r) for r in real)
    if others > MOST_OTHER_TARGETS * count or everywhere:
        return None
    return Padded(padded, target, _at([b.inputs for b in batches], masks), also_real=any(r.any() for r in real))
