"""Fingerprints of samples that survive float noise and a change of dtype, in one pass and bounded memory."""

from collections.abc import Iterator
from functools import lru_cache
from zlib import crc32

import numpy as np

# Odd 64-bit constants of splitmix64 (Steele et al. 2014).
MIX1 = np.uint64(0xBF58476D1CE4E5B9)
MIX2 = np.uint64(0x94D049BB133111EB)
STEP = np.uint64(0x9E3779B97F4A7C15)
# The exact fingerprint of a sample whose every value is the same: a blank page equals another by nature.
BLANK = np.uint64(0)
# Fewer equal values in a row are chance: (1, 1) is a sample of two yes/no columns, not a blank one.
LEAST_BLANK = 16
# Work on so many values at a time that the intermediate arrays stay in the processor's cache.
CHUNK_VALUES = 1 << 18
# Random projections a sample: unrelated samples share all eight cells about once in 1e14 pairs.
PROJECTIONS = 8
# Width of a cell, in units of √width. Rounding to half precision moves a projection by 2e-4 of these units: about
# one sample in ten crosses a border of one grid, one in a hundred a border of both. Noise of float32 crosses neither.
CELL = 1 / 80
# Values far below the sample's own scale count absolutely, others relatively: after a mean was subtracted, what is
# left near zero is noise of the size of the large values.
FLOOR = 1 / 32


def fingerprints(arrays: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """(exact, rounded), uint64, a row a sample over all input arrays: of shape (n,) and (n, 2).

    Exact means equal in float32, whole numbers in full. Samples that differ by no more than the noise of half precision
    agree in one of the two columns of `rounded`, which hold cells of two grids shifted against each other.
    """
    count = arrays[0].shape[0]
    exact = np.zeros(count, dtype=np.uint64)
    rounded = np.zeros((count, 2), dtype=np.uint64)
    blank = np.ones(count, dtype=bool)
    for array in arrays:
        flat = _numbers(array).reshape(count, -1)
        for rows in _chunks(flat):
            part = flat[rows]
            values = _float32(part)
            own = _hash(values) ^ _beyond_float32(part, values)
            exact[rows] = _mix(exact[rows] + STEP) ^ own
            near = _near(values) if part.dtype.kind == "f" else own[:, None]
            rounded[rows] = _mix(rounded[rows] + STEP) ^ near
            blank[rows] &= (values == values[:, :1]).all(axis=1) & (values.shape[1] >= LEAST_BLANK)
    exact[exact == BLANK] = STEP
    exact[blank] = BLANK
    return exact, rounded


def _chunks(flat: np.ndarray) -> Iterator[slice]:
    size = max(1, CHUNK_VALUES // max(flat.shape[1], 1))
    for start in range(0, len(flat), size):
        yield slice(start, start + size)


def _numbers(array: np.ndarray) -> np.ndarray:
    """Complex numbers as pairs; texts and objects by a checksum of what they print."""
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag], axis=-1)
    if array.dtype.kind in "biuf":
        return array
    return np.array([crc32(repr(v).encode()) for v in array.ravel().tolist()], dtype=np.int64).reshape(array.shape)


def _float32(part: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.ascontiguousarray(part, dtype=np.float32)
    values = values + np.float32(0)  # minus zero becomes zero; also a copy, so that the user's array is left alone
    values[np.isnan(values)] = np.nan  # one NaN for all
    return values


def _hash(values: np.ndarray) -> np.ndarray:
    """One number a row of float32 values: two values at a time, each pair with a key of its own."""
    if values.shape[1] % 2:
        values = np.concatenate([values, np.zeros((len(values), 1), np.float32)], axis=1)
    pairs = values.view(np.uint64) ^ _keys(values.shape[1] // 2)
    pairs *= MIX1
    pairs ^= pairs >> np.uint64(32)
    pairs *= MIX2
    pairs ^= pairs >> np.uint64(29)
    return _mix(pairs.sum(axis=1, dtype=np.uint64))


def _beyond_float32(part: np.ndarray, values: np.ndarray) -> np.ndarray:
    """What float32 drops of whole numbers above 2**24; zero where it drops nothing."""
    if part.dtype.kind not in "iu" or part.dtype.itemsize < 4:
        return np.zeros(len(part), dtype=np.uint64)
    with np.errstate(invalid="ignore", over="ignore"):
        rest = (part.astype(np.int64) - values.astype(np.int64)).view(np.uint64)
    return np.where(rest != 0, _mix(rest ^ _keys(rest.shape[1])), np.uint64(0)).sum(axis=1, dtype=np.uint64)


def _near(values: np.ndarray) -> np.ndarray:
    """Cells of a few random projections, in two grids. Many small errors cancel in a projection, as they do not where
    each value is rounded for itself and a single one at a border parts two equal samples."""
    width = values.shape[1]
    finite = np.where(np.isfinite(values), values, np.float32(0))
    scale = np.sqrt(np.einsum("ij,ij->i", finite, finite, dtype=np.float64) / max(width, 1))
    safe = np.where(scale > 0, scale, 1.0)
    # Samples below 1e-37 would ask for more than float32 holds.
    factor = np.minimum(1 / (FLOOR * safe), np.finfo(np.float32).max).astype(np.float32)
    terms = np.arcsinh(finite * factor[:, None])
    if not np.isfinite(values).all():
        terms += np.select([np.isnan(values), np.isposinf(values), np.isneginf(values)], [7, 9, -9], 0).astype(np.float32)
    # `terms` do not tell a sample from its double: the scale is a term of its own, as precise as all others together.
    size = np.where(scale > 0, np.log(safe), -100.0) * np.sqrt(width)
    weights = _weights(width + 1)
    places = (terms @ weights[:-1]).astype(np.float64) + size[:, None] * weights[-1].astype(np.float64)
    places /= CELL * np.sqrt(width + 1)
    return np.stack([_hash_whole(np.floor(places + shift)) for shift in (0.0, 0.5)], axis=1)


def _hash_whole(cells: np.ndarray) -> np.ndarray:
    return _mix(_mix(cells.astype(np.int64).view(np.uint64) ^ _keys(cells.shape[1])).sum(axis=1, dtype=np.uint64))


@lru_cache(maxsize=16)
def _keys(count: int) -> np.ndarray:
    with np.errstate(over="ignore"):
        return _mix(np.arange(1, count + 1, dtype=np.uint64) * STEP)


@lru_cache(maxsize=16)
def _weights(count: int) -> np.ndarray:
    """(count, PROJECTIONS) numbers of mean 0 and variance 1, the same on every machine."""
    uniform = (_keys(count * PROJECTIONS) >> np.uint64(40)).astype(np.float64) / 2**24
    return ((uniform - 0.5) * np.sqrt(12)).astype(np.float32).reshape(count, PROJECTIONS)


def _mix(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * MIX1
        x = (x ^ (x >> np.uint64(27))) * MIX2
        return x ^ (x >> np.uint64(31))
