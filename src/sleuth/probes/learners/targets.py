"""Targets as columns of numbers for simple learners: classes, real numbers, several of either."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sleuth.core.errors import Unsupported

# A class with fewer samples than this tells a learner nothing; beyond the most frequent ones it is the same.
FEWEST_PER_CLASS = 5
MOST_CLASSES = 64
# Wider targets have one value a position: a mask, a sentence, an image.
MOST_OUTPUTS = 64
# More columns than this cost time and tell no more: they are mixed into so many by fixed random weights.
WIDTH = 16
# What losses are told to skip.
IGNORED = -100
CLIP = 5.0


@dataclass(frozen=True)
class Encoded:
    """`columns` are standardised, and mixed where there were many; `plain` are not mixed, and end with the target as a number.
    `classes` is 0 when a target is not one class a sample."""

    columns: np.ndarray
    plain: np.ndarray
    classes: int


@dataclass(frozen=True)
class Columns:
    columns: np.ndarray
    classes: int


def encode(targets: Sequence[np.ndarray], inputs: Sequence[np.ndarray]) -> Encoded:
    """`inputs`: compacted, to recognise a target that is the input itself."""
    if not targets:
        raise Unsupported("the batches have no target that could be told from the inputs; say with split= which part it is")
    parts = [_encode(target, inputs) for target in targets]
    columns = np.concatenate([p.columns for p in parts], axis=1)
    keep = columns.std(axis=0) > 1e-6
    if not keep.any():
        raise Unsupported(f"all {len(columns)} samples that were looked at have the same target")
    plain = np.clip(_standardise(columns[:, keep]), -CLIP, CLIP).astype(np.float32)
    mixed = plain
    if plain.shape[1] > WIDTH:
        weights = np.random.default_rng(0).normal(size=(plain.shape[1], WIDTH))
        mixed = _standardise(plain @ weights).astype(np.float32)
    return Encoded(mixed, plain, parts[0].classes if len(parts) == 1 else 0)


def _standardise(columns: np.ndarray) -> np.ndarray:
    return np.asarray((columns - columns.mean(axis=0)) / columns.std(axis=0))


def _encode(target: np.ndarray, inputs: Sequence[np.ndarray]) -> Columns:
    values = target.reshape(len(target), -1) if target.ndim > 1 and target[0].size == 1 else target
    if values.ndim > 2 or (values.ndim == 2 and values.shape[1] > MOST_OUTPUTS):
        raise Unsupported(f"the target has one value a position (its shape is {target.shape[1:]} a sample), not one a sample")
    flat = values.reshape(len(values), -1)
    if any(block.shape == flat.shape and flat.shape[1] > 1 and np.allclose(block, flat) for block in inputs):
        raise Unsupported("the target is the input itself")
    binary = bool(np.isin(flat, (0, 1)).all())
    if flat.shape[1] == 1 and (values.dtype.kind != "f" or binary):
        return _classes(flat[:, 0].astype(np.int64))
    if values.dtype.kind != "f" and not binary:
        raise Unsupported(f"the target holds {flat.shape[1]} whole numbers a sample, one a position, not one a sample")
    return Columns(np.nan_to_num(flat.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0), classes=0)


def _classes(labels: np.ndarray) -> Columns:
    values, counts = np.unique(labels, return_counts=True)
    usable = (counts >= FEWEST_PER_CLASS) & (values != IGNORED)
    frequent = values[usable][np.argsort(-counts[usable], kind="stable")][:MOST_CLASSES]
    if len(values) == 1:
        raise Unsupported(f"all {len(labels)} samples that were looked at have the same target: {values[0]}")
    if not len(frequent) or len(values) > len(labels) / 2:
        raise Unsupported(
            f"the {len(labels)} samples that were looked at have {len(values)} different classes: too few samples a class"
        )
    columns = [(labels == value) for value in frequent]
    # Classes that are grades or counts have an order, which one column can tell at once.
    if len(values) > 2 and IGNORED not in values:
        columns.append(labels)
    return Columns(np.stack(columns, axis=1).astype(np.float32), classes=len(frequent))
