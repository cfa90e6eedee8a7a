"""Looks for near-duplicates, where the user asks for them: some samples, each against all others."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.stage import Stage
from sleuth.core.trial import Alike, Resemblance
from sleuth.probes.fingerprint import BLANK
from sleuth.probes.prints import whole_prints
from sleuth.probes.probe import Lab, Readings, probe

# Samples that are asked: enough to see a share of one in a hundred.
ASKED = 1024
# Comparisons in all: in larger sets fewer samples are asked.
COMPARISONS = 200_000_000
CHUNK = 64
EXAMPLES = 5
# Pairs by which the usual difference of two samples is told.
USUAL_PAIRS = 4096


@dataclass(frozen=True)
class Sketched:
    sketches: np.ndarray
    exact: np.ndarray
    positions: np.ndarray


@probe(title="Looking for near-duplicates", stage=Stage.DATA, rank=35, emits=(Resemblance,), share=0.15)
def resemblance(lab: Lab) -> Iterator[Observation]:
    within, across = (lab.threshold(check, "near") for check in ("duplicate-samples", "train-val-overlap"))
    if max(within, across) <= 0:
        raise Unsupported("near-duplicates are looked for only where a threshold `near` is set")
    train = _sketched(whole_prints(lab, lab.subject.train, lab.train))
    validation = None
    if lab.validation is not None and across > 0:
        validation = _sketched(whole_prints(lab, lab.subject.validation, lab.validation))
    yield Resemblance(
        within=_compare(lab, train, train, within) if within > 0 else None,
        across=_compare(lab, validation, train, across) if validation is not None else None,
    )


def _sketched(readings: Readings) -> Sketched:
    """Without blank samples, and each of equal ones once."""
    if not readings.sketches or sum(map(len, readings.sketches)) != sum(map(len, readings.exact)):
        raise Unsupported("a batch holds no array with one entry a sample, so samples cannot be compared")
    exact = np.concatenate(readings.exact)
    _, first = np.unique(exact, return_index=True)
    first = np.sort(first[exact[first] != BLANK])
    if len(first) < 2:
        raise Unsupported("fewer than two different samples can be compared")
    return Sketched(np.concatenate(readings.sketches)[first], exact[first], first)


def _compare(lab: Lab, asked: Sketched, others: Sketched, near: float) -> Alike:
    rng = lab.rng
    count = min(len(asked.exact), ASKED, max(CHUNK, COMPARISONS // len(others.exact)))
    chosen = np.sort(rng.permutation(len(asked.exact))[:count])
    usual = _usual(others.sketches, rng)
    nearest = np.empty(count)
    partner = np.empty(count, dtype=np.int64)
    for start in range(0, count, CHUNK):
        lab.tick()
        rows = slice(start, min(start + CHUNK, count))
        distances = _distances(asked.sketches[chosen[rows]], others.sketches)
        distances[asked.exact[chosen[rows]][:, None] == others.exact[None]] = np.inf
        partner[rows] = distances.argmin(axis=1)
        nearest[rows] = distances.min(axis=1) / usual
    found = np.flatnonzero(nearest <= near)
    best = found[np.argsort(nearest[found], kind="stable")][:EXAMPLES]
    return Alike(
        near=near,
        asked=count,
        others=len(others.exact),
        found=len(found),
        beyond=int(np.sum((nearest > near) & (nearest <= 2 * near))),
        examples=tuple(
            (int(asked.positions[chosen[i]]), int(others.positions[partner[i]]), round(float(nearest[i]), 4)) for i in best
        ),
    )


def _distances(some: np.ndarray, all_: np.ndarray) -> np.ndarray:
    """Squared, of every pair; the others in parts, so that they are never all held in full precision."""
    wanted = some.astype(np.float32)
    squares = np.square(wanted).sum(axis=1)[:, None]
    found = np.empty((len(some), len(all_)), dtype=np.float32)
    step = 1 << 16
    for start in range(0, len(all_), step):
        part = all_[start : start + step].astype(np.float32)
        found[:, start : start + step] = squares + np.square(part).sum(axis=1) - 2 * wanted @ part.T
    return np.maximum(found, 0)


def _usual(sketches: np.ndarray, rng: np.random.Generator) -> float:
    one, other = rng.integers(0, len(sketches), (2, USUAL_PAIRS))
    different = one != other
    gaps = sketches[one[different]].astype(np.float32) - sketches[other[different]].astype(np.float32)
    return max(float(np.median(np.square(gaps).sum(axis=1))), 1e-12)
