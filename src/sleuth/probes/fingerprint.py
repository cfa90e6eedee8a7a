"""Fingerprints of samples that survive float noise and a change of dtype."""

import numpy as np

# Odd 64-bit constants of splitmix64 (Steele et al. 2014).
MIX1 = np.uint64(0xBF58476D1CE4E5B9)
MIX2 = np.uint64(0x94D049BB133111EB)
STEP = np.uint64(0x9E3779B97F4A7C15)
# float32 keeps 24 bits of a value; half-precision and averaging noise stay below the last twelve of them.
NOISE_BITS = 12


def fingerprints(arrays: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """(exact, rounded): one uint64 a sample over all input arrays. Exact means equal in float32."""
    exact = np.zeros(arrays[0].shape[0], dtype=np.uint64)
    rounded = exact.copy()
    for array in arrays:
        bits = _bits(array)
        exact = _mix(exact + STEP) ^ _hash_rows(bits)
        rounded = _mix(rounded + STEP) ^ _hash_rows(_round(bits) if array.dtype.kind == "f" else bits)
    return exact, rounded


def _bits(array: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        flat = np.ascontiguousarray(array.reshape(array.shape[0], -1).astype(np.float32))
    flat[flat == 0] = 0.0  # minus zero is zero
    return flat.view(np.uint32)


def _round(bits: np.ndarray) -> np.ndarray:
    half = np.uint32(1 << (NOISE_BITS - 1))
    return (bits + half) >> np.uint32(NOISE_BITS)


def _hash_rows(bits: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        keys = _mix(np.arange(1, bits.shape[1] + 1, dtype=np.uint64) * STEP) | np.uint64(1)
        return _mix((_mix(bits.astype(np.uint64) + STEP) * keys).sum(axis=1, dtype=np.uint64))


def _mix(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * MIX1
        x = (x ^ (x >> np.uint64(27))) * MIX2
        return x ^ (x >> np.uint64(31))
