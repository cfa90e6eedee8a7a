"""Looks for near-duplicates, where the user asks for them: some samples, each against all others."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.stage import Stage
from sleuth.core.trial import Alike, Resemblance
from sleuth.probes.fingerprints.bulk import whole_prints
from sleuth.probes.fingerprints.fingerprint import BLANK
from sleuth.probes.lab.probe import Lab, Readings, probe

# Samples that are asked: enough to see a share of one in a hundred.
ASKED = 1024
# Comparisons in all: in larger sets fewer samples are asked.
COMPARISONS = 200_000_000
CHUNK, PART = 64, 1 << 15
EXAMPLES = 5
# A sample and its copies are fewer than this: the tenth nearest is somebody else. How neighbours thin out from there to
# the thirtieth tells in how many directions samples vary, and so how near the nearest comes by chance.
MOST_COPIES, NEIGHBOURS = 9, 30
CHANCE = 1e-3
# Sketches are kept in half precision: nearer than this share of their squared length, two cannot be told apart.
ROUNDING = 2.0**-21
# However many directions there are, a copy is twice as near as others.
MOST_RATIO = 0.25
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
    if len(others.exact) <= NEIGHBOURS:
        raise Unsupported(f"{len(others.exact)} samples are too few to tell near-duplicates from neighbours")
    count = min(len(asked.exact), ASKED, max(CHUNK, COMPARISONS // len(others.exact)))
    chosen = lab.rng.permutation(len(asked.exact))[:count]
    usual = _usual(others.sketches, lab.rng)
    parts = []
    for start in range(0, count, CHUNK):
        parts.append(_nearest(asked, chosen[start : start + CHUNK], others))
        if lab.time_is_up():
            break
    gaps, partners = np.concatenate([p[0] for p in parts]) / usual, np.concatenate([p[1] for p in parts])
    dimension = _dimension(gaps)
    close = gaps[:, 0] <= near
    found = np.flatnonzero(close & (gaps[:, 0] <= _ratio(dimension) * gaps[:, MOST_COPIES]))
    best = found[np.argsort(gaps[found, 0], kind="stable")][:EXAMPLES]
    examples = [(asked.positions[chosen[i]], others.positions[partners[i]], gaps[i, 0]) for i in best]
    return Alike(
        near=near,
        asked=len(gaps),
        others=len(others.exact),
        found=len(found),
        neighbours=int(close.sum()),
        dimension=dimension,
        examples=tuple((int(one), int(other), round(float(gap), 4)) for one, other, gap in examples),
    )


def _nearest(asked: Sketched, rows: np.ndarray, others: Sketched) -> tuple[np.ndarray, np.ndarray]:
    """Squared distances of each of these to its nearest, in rising order, equals left out; and where the first one stands."""
    wanted = asked.sketches[rows].astype(np.float32)
    squares = np.square(wanted).sum(axis=1)[:, None]
    best = np.full((len(rows), NEIGHBOURS), np.inf, dtype=np.float32)
    partner = np.zeros(len(rows), dtype=np.int64)
    for start in range(0, len(others.exact), PART):
        part = others.sketches[start : start + PART].astype(np.float32)
        distances = np.maximum(squares + np.square(part).sum(axis=1) - 2 * wanted @ part.T, 0)
        distances[asked.exact[rows][:, None] == others.exact[None, start : start + PART]] = np.inf
        place = distances.argmin(axis=1)
        partner = np.where(distances[np.arange(len(rows)), place] < best.min(axis=1), start + place, partner)
        best = np.partition(np.concatenate([best, distances], axis=1), NEIGHBOURS - 1, axis=1)[:, :NEIGHBOURS]
    return np.maximum(np.sort(best, axis=1), ROUNDING * squares), partner


def _dimension(gaps: np.ndarray) -> float:
    """Three times as many neighbours are found at 3^(1/dimension) times the distance."""
    first, last = gaps[:, MOST_COPIES], gaps[:, -1]
    growth = np.log(np.maximum(last, 1e-12) / np.maximum(first, 1e-12)) / 2
    return float(np.log(NEIGHBOURS / (MOST_COPIES + 1)) / max(float(np.median(growth)), 1e-3))


def _ratio(dimension: float) -> float:
    """How much nearer than the tenth the nearest must be, in squares, for chance to bring that about once in a thousand."""
    return float(min(MOST_RATIO, (CHANCE / MOST_COPIES) ** (2 / dimension)))


def _usual(sketches: np.ndarray, rng: np.random.Generator) -> float:
    one, other = rng.integers(0, len(sketches), (2, USUAL_PAIRS))
    different = one != other
    gaps = sketches[one[different]].astype(np.float32) - sketches[other[different]].astype(np.float32)
    return max(float(np.median(np.square(gaps).sum(axis=1))), 1e-12)
