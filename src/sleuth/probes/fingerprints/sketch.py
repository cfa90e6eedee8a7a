"""A few numbers for each sample, such that near-duplicates have nearly the same: taken only where the user asks for them.

Squared distances of sketches stand for those of the samples (random projections keep them). Images count by a thumbnail
with its own mean and contrast taken out, so that brightness, re-encoding and a cropped border hardly move it; columns of
a table by their standard deviations; token ids by the set of single tokens and pairs of neighbours.
"""

from functools import lru_cache

import numpy as np

from sleuth.core.reading.batch_facts import Contents
from sleuth.probes.fingerprints.fingerprint import MIX1, MIX2, STEP
from sleuth.probes.lab.probe import Lab, Readings

# Checks that can ask for near-duplicates.
ASKING = ("duplicate-samples", "train-val-overlap")
# A distance is off by a sixth with so many numbers: fine enough for a threshold.
WIDTH = 64
# Pixels along the longer side of a thumbnail.
THUMBNAIL = 8
# Beyond this many standard deviations one wild value would rule the distance.
CLIP = 5.0
# A column that hardly varies among the first samples may do so later: it does not count more than this times the others.
LEAST_SCALE = 0.1
# Of longer samples every second or third value must do.
MOST_VALUES = 1 << 15
# Rows that are worked on at once.
CHUNK = 256


class Sketcher:
    """Learns the scale of columns from the first batch that it sees."""

    def __init__(self) -> None:
        self._scales: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def sketch(self, arrays: list[np.ndarray]) -> np.ndarray:
        total = np.zeros((len(arrays[0]), WIDTH), dtype=np.float32)
        for number, values in enumerate(arrays):
            if values.dtype.kind in "iu" and values.dtype != np.uint8 and values.ndim <= 2:
                total += _tokens(values.reshape(len(values), -1))
            else:
                total += self._numbers(number, values)
        return total.astype(np.float16)

    def _numbers(self, number: int, values: np.ndarray) -> np.ndarray:
        if values.ndim > 3:
            table = _thumbnails(values)
        else:
            flat = values.reshape(len(values), -1)
            flat = flat[:, :: -(-flat.shape[1] // MOST_VALUES) or 1]
            table = self._standardised(number, np.nan_to_num(flat.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0))
        return table @ _weights(table.shape[1], number) / np.float32(np.sqrt(max(table.shape[1], 1)))

    def _standardised(self, number: int, flat: np.ndarray) -> np.ndarray:
        if number not in self._scales:
            std = flat.std(axis=0)
            usual = float(np.median(std[std > 0])) if (std > 0).any() else 1.0
            self._scales[number] = flat.mean(axis=0), np.maximum(std, LEAST_SCALE * usual)
        mean, std = self._scales[number]
        table = np.zeros((len(flat), len(mean)), dtype=np.float32)
        width = min(flat.shape[1], len(mean))  # series of another length are cut, or filled with what is usual
        table[:, :width] = np.clip((flat[:, :width] - mean[:width]) / std[:width], -CLIP, CLIP)
        return table


def note_sketch(lab: Lab, batch: Contents, readings: Readings) -> None:
    if not any(lab.threshold(check, "near") > 0 for check in ASKING):
        return
    arrays = [a.values for a in batch.inputs if a.values.ndim and len(a.values) == batch.size and a.values.dtype.kind in "biuf"]
    if arrays:
        lab.sketcher = lab.sketcher or Sketcher()
        readings.sketches.append(lab.sketcher.sketch(arrays))


def _thumbnails(images: np.ndarray) -> np.ndarray:
    """(n, values) of mean 0 and length √values; channels stand first or last, whichever axis is shorter."""
    first = images if images.shape[1] <= images.shape[-1] else np.moveaxis(images, -1, 1)
    small = np.nan_to_num(first.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    for axis in range(2, small.ndim):
        small = _shrink(small, axis)
    flat = small.reshape(len(small), -1)
    flat = flat - flat.mean(axis=1, keepdims=True)
    return flat / np.maximum(flat.std(axis=1, keepdims=True), 1e-6)


def _shrink(images: np.ndarray, axis: int) -> np.ndarray:
    """Neighbours along an axis averaged; what is left over at its ends is cut off."""
    factor = max(1, images.shape[axis] // THUMBNAIL)
    kept = images.shape[axis] // factor
    cut = (images.shape[axis] - kept * factor) // 2
    moved = np.moveaxis(images, axis, -1)[..., cut : cut + kept * factor]
    return np.moveaxis(moved.reshape(*moved.shape[:-1], kept, factor).mean(axis=-1), -1, axis)


def _tokens(ids: np.ndarray) -> np.ndarray:
    """Each token and each pair of neighbours has 64 signs of its own; a row adds up those that it holds, once each."""
    found = np.empty((len(ids), WIDTH), dtype=np.float32)
    for start in range(0, len(ids), CHUNK):
        some = ids[start : start + CHUNK].astype(np.uint64)
        single = _mixed(some + STEP)
        pairs = _mixed(single[:, :-1] ^ (some[:, 1:] * MIX1))
        keys = np.sort(np.concatenate([single, pairs], axis=1), axis=1)
        fresh = np.ones(keys.shape, dtype=bool)
        fresh[:, 1:] = keys[:, 1:] != keys[:, :-1]
        signs = np.unpackbits(keys[..., None].view(np.uint8), axis=-1).astype(np.float32) * 2 - 1
        total = np.einsum("ntk,nt->nk", signs, fresh.astype(np.float32))
        found[start : start + CHUNK] = total / np.sqrt(fresh.sum(axis=1, keepdims=True))
    return found


def _mixed(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * MIX1
        x = (x ^ (x >> np.uint64(27))) * MIX2
        return np.asarray(x ^ (x >> np.uint64(31)))


@lru_cache(maxsize=8)
def _weights(count: int, number: int) -> np.ndarray:
    return np.random.default_rng(number).normal(size=(count, WIDTH)).astype(np.float32)
