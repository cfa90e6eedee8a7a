"""Samples of any kind as rows of a table, for simple learners: tables, images, signals, token ids."""

from collections.abc import Sequence

import numpy as np

from sleuth.probes.learners.tokens import count_tokens, shuffle_tokens

# Beyond this many values a sample is shrunk by averaging neighbours: what simple learners can use survives that.
MOST_VALUES = 4096
MOST_SIGNAL = 1 << 16
# Columns that the learners get of one input; wider ones go through a fixed random projection, which keeps distances.
WIDTH = 192
# From this length on a row of floats may be a signal, whose phase hides from linear learners and its spectrum does not.
SIGNAL_LENGTH = 256
BANDS = 16
# Standardised values beyond this are cut: one wild value must not rule all distances.
CLIP = 5.0


def compact(values: np.ndarray) -> list[np.ndarray]:
    """One input of one batch as blocks of (n, columns), small enough to keep thousands of samples. Token ids stay whole."""
    if values.dtype.kind in "iu" and values.dtype != np.uint8 and values.ndim <= 2:
        return [values.reshape(len(values), -1)[:, :MOST_VALUES].astype(np.int64)]
    numbers = np.nan_to_num(values.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    while numbers[0].size > MOST_SIGNAL:
        numbers = _halve(numbers)
    extra = [_summary(numbers)] if numbers.ndim > 2 or numbers[0].size >= SIGNAL_LENGTH else []
    while numbers[0].size > MOST_VALUES:
        numbers = _halve(numbers)
    return [numbers.reshape(len(numbers), -1), *extra]


def tabulate(blocks: Sequence[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """Compacted inputs side by side: standardised columns, wide ones projected; constant columns are gone."""
    tables = [standardise(count_tokens(b) if b.dtype == np.int64 else b) for b in blocks]
    return standardise(np.concatenate([_project(t, rng) if t.shape[1] > 2 * WIDTH else t for t in tables], axis=1))


def standardise(table: np.ndarray) -> np.ndarray:
    std = table.std(axis=0)
    # Constant columns keep a rounding error of their size.
    keep = std > 1e-5 * (np.abs(table).max(axis=0) + 1e-30)
    scaled = (table[:, keep] - table[:, keep].mean(axis=0)) / std[keep]
    return np.asarray(np.clip(scaled, -CLIP, CLIP), dtype=np.float32)


def freedom(blocks: Sequence[np.ndarray], rng: np.random.Generator) -> float:
    """How freely the values of a sample vary beside each other: 1 when each is drawn for itself, near 0 when a few
    directions tell all. Measured against the same values, each column in an order of its own."""
    mixed = [shuffle_tokens(b, rng) if b.dtype == np.int64 else rng.permuted(b, axis=0) for b in blocks]
    return _dimension(tabulate(blocks, rng)) / _dimension(tabulate(mixed, rng))


def _dimension(table: np.ndarray) -> float:
    """The participation ratio of the principal components."""
    products = table.T @ table if table.shape[1] < len(table) else table @ table.T
    return float(np.trace(products) ** 2 / np.square(products).sum())


def _halve(numbers: np.ndarray) -> np.ndarray:
    """Neighbours averaged along the longest axis."""
    axis = 1 + int(np.argmax(numbers.shape[1:]))
    even = numbers.shape[axis] // 2 * 2
    moved = np.moveaxis(numbers, axis, -1)[..., :even]
    return np.moveaxis(moved.reshape(*moved.shape[:-1], even // 2, 2).mean(axis=-1), -1, axis)


def _summary(numbers: np.ndarray) -> np.ndarray:
    """What does not depend on where something stands: moments, roughness, power by band of the longest axis."""
    moved = np.moveaxis(numbers, 1 + int(np.argmax(numbers.shape[1:])), -1)
    rows = moved.reshape(len(moved), -1, moved.shape[-1])
    flat = rows.reshape(len(rows), -1)
    rough = np.abs(np.diff(rows, axis=-1)).mean(axis=(1, 2)) if rows.shape[-1] > 1 else np.zeros(len(rows))
    parts = [flat.mean(axis=1), flat.std(axis=1), flat.min(axis=1), flat.max(axis=1), rough]
    if rows.shape[-1] >= 2 * BANDS:
        power = np.square(np.abs(np.fft.rfft(rows, axis=-1))).mean(axis=1)
        parts += [np.log(band.mean(axis=1) + 1e-12) for band in np.array_split(power, BANDS, axis=1)]
    return np.stack(parts, axis=1).astype(np.float32)


def _project(block: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    weights = rng.normal(size=(block.shape[1], WIDTH)).astype(np.float32)
    return block @ (weights / np.float32(np.sqrt(block.shape[1])))
