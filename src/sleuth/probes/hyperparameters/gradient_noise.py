"""How much gradients of different batches disagree: the gradient noise scale, with its uncertainty."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from sleuth.core.contract.adapter import Describes
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.stage import Stage
from sleuth.core.subject import Parts, take_apart
from sleuth.core.trial import GradientNoise, NoiseScale
from sleuth.probes.lab.one_batch import sample_count, take_rows
from sleuth.probes.lab.probe import Lab, probe
from sleuth.probes.lab.rates import use_working_rate
from sleuth.probes.lab.sources import open_source

# Fewer gradients leave the noise itself uncertain by more than a third.
FEWEST = 16
# Of small batches; their gradients hold so much noise that only many tell what is left of it in the mean.
MOST = 512
SAMPLES = 1024
# Between these a batch size is nobody's concern: a look at its noise will do.
USUAL = (16, 1024)
# Gradients are compared in a random sketch of this many numbers, which keeps lengths and angles to a few percent.
SKETCH = 4096
# Standard errors to each side. A little more than two: few batches, and their squares have long tails.
ERRORS = 2.5
# A batch this many times off at the start is looked at again later: the scale grows while the loss falls.
WORTH_A_SECOND_LOOK = 10.0
LATER = 150
# Sums in float32.
ROUNDING = 1e-3


@dataclass(frozen=True)
class Pieces:
    batches: list[Parts]
    size: int  # samples in each
    batch_size: int  # as training uses it


@probe(
    title="Comparing gradients of different batches",
    stage=Stage.HYPERPARAMETERS,
    rank=20,
    emits=(GradientNoise,),
    needs=("forward", "loss", "backward"),
    share=0.08,
)
def gradient_noise(lab: Lab) -> Iterator[Observation]:
    if lab.train.order_is_ours:
        raise Unsupported("plain arrays were given: their batches are sleuth's own")
    start = lab.bench.snapshot()
    try:
        pieces = _pieces(lab)
        points = [_measure(lab, pieces, 0, start)]
        if _is_extreme(points[0], pieces.batch_size):
            points.append(_later(lab, pieces, start))
        yield GradientNoise(pieces.batch_size, len(pieces.batches), tuple(points))
    finally:
        lab.bench.set_training(True)
        lab.bench.restore(start)


def _pieces(lab: Lab) -> Pieces:
    """Whole batches where there are enough of them: then the gradients are those of training, whatever happens in a batch."""
    sizes = [sample_count(lab, batch) for batch in lab.train.batches]
    size, _ = Counter(sizes).most_common(1)[0] if sizes else (None, 0)
    if not size:
        raise Unsupported("the samples of a batch cannot be counted")
    equal = [batch for batch, count in zip(lab.train.batches, sizes, strict=True) if count == size]
    if size < USUAL[0]:
        equal = _read_on(lab, size, equal)
    if len(equal) >= FEWEST:
        wanted = FEWEST if USUAL[0] <= size <= USUAL[1] else int(np.clip(SAMPLES // size, FEWEST, MOST))
        return Pieces(equal[:wanted], size, size)
    return Pieces(*_cut(lab, equal, size), size)


def _read_on(lab: Lab, size: int, known: list[Parts]) -> list[Parts]:
    """More batches than reading keeps, read anew: generators inside the source are put back after the examination."""
    wanted = min(MOST, SAMPLES // size)
    if len(known) >= wanted or len(known) == lab.train.samples // size:
        return known
    found: list[Parts] = []
    for raw in islice(open_source(lab.subject.train, lab.adapter, "train").batches, wanted):
        lab.tick()
        batch = take_apart(raw, lab.subject.split)
        found += [batch] if sample_count(lab, batch) == size else []
    return max(found, known, key=len)


def _cut(lab: Lab, batches: list[Parts], size: int) -> tuple[list[Parts], int]:
    """A few large batches in parts: only where the loss of a batch is the mean of the losses of its parts."""
    few = (
        f"there is only one batch of {size} samples"
        if len(batches) == 1
        else f"there are only {len(batches)} batches of {size} samples"
    )
    if isinstance(lab.adapter, Describes) and lab.architecture.has("batchnorm"):
        raise Unsupported(f"{few}, and with batch normalisation a part of one has gradients of its own")
    part = max(1, size * len(batches) // (2 * FEWEST))
    places = [np.arange(first, first + part) for first in range(0, size - part + 1, part)]
    if len(places) * len(batches) < FEWEST:
        raise Unsupported(few)
    try:
        if not _is_mean(lab, batches[0], size):
            raise Unsupported(f"{few}, and the loss of a batch is not the mean over its samples")
        return [take_rows(lab, batch, rows) for batch in batches for rows in places], part
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        raise Unsupported(f"{few}, and the model does not run on a part of one") from error


def _is_mean(lab: Lab, batch: Parts, size: int) -> bool:
    lab.bench.set_training(False)
    halves = [np.arange(size // 2), np.arange(size // 2, size)]
    parts = sum(len(rows) / size * lab.bench.loss(take_rows(lab, batch, rows)) for rows in halves)
    whole = lab.bench.loss(batch)
    return abs(parts - whole) <= ROUNDING * abs(whole)


def _measure(lab: Lab, pieces: Pieces, step: int, state: Any) -> NoiseScale:
    lab.bench.set_training(True)
    signs = None
    rows = []
    for batch in pieces.batches:
        lab.tick()
        flat = _flat(lab, batch)
        if signs is None:
            signs = lab.rng.choice(np.array([-1.0, 1.0], np.float32), size=len(flat))
        rows.append(_sketch(flat, signs))
    lab.bench.restore(state)
    return noise_scale(np.stack(rows), pieces.size, step)


def _later(lab: Lab, pieces: Pieces, start: Any) -> NoiseScale:
    lab.bench.restore(start)
    use_working_rate(lab)
    lab.bench.set_training(True)
    for step in range(LATER):
        lab.tick()
        if not math.isfinite(lab.bench.step(lab.train.batches[step % len(lab.train.batches)])):
            raise Unsupported("the loss is not finite after a few steps")
    return _measure(lab, pieces, LATER, lab.bench.snapshot())


def _flat(lab: Lab, batch: Parts) -> np.ndarray:
    gradients = lab.bench.gradients(batch).by_path
    parts = []
    for path, gradient in gradients.items():
        size = int(np.prod(lab.bench.parameter(path).shape))
        parts.append(np.zeros(size) if gradient is None else lab.adapter.values(gradient).ravel())
    flat = np.concatenate(parts).astype(np.float32)
    if not np.all(np.isfinite(flat)):
        raise Unsupported("a gradient is not finite")
    return flat


def _sketch(flat: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Numbers far apart are added up with random signs: linear, so that lengths of sums and differences are kept too."""
    if len(flat) <= 2 * SKETCH:
        return flat.astype(np.float64)
    padded = np.zeros(-(-len(flat) // SKETCH) * SKETCH, np.float64)
    padded[: len(flat)] = flat * signs
    return np.asarray(padded.reshape(-1, SKETCH).sum(axis=0))


def noise_scale(gradients: np.ndarray, size: int, step: int) -> NoiseScale:
    """From one gradient a row, each of `size` samples."""
    products = gradients @ gradients.T
    count = len(products)
    squares, total = np.diag(products).sum(), products.sum()
    ratio = _signal(squares, total, count) / size
    without = _signal(squares - np.diag(products), total - 2 * products.sum(axis=1) + np.diag(products), count - 1) / size
    error = math.sqrt((count - 1) / count * float(np.square(without - without.mean()).sum()))
    low, high = float(ratio) - ERRORS * error, float(ratio) + ERRORS * error
    return NoiseScale(step, _inverse(float(ratio)), 1 / max(high, 1e-12), _inverse(low))


def _signal(squares: Any, total: Any, count: int) -> Any:
    """The squared length of the true gradient over the variance of one gradient, each estimated without bias."""
    mean = total / count**2
    variance = np.maximum((squares - count * mean) / (count - 1), 1e-30)
    return (mean - variance / count) / variance


def _inverse(ratio: float) -> float | None:
    return 1 / ratio if ratio > 0 else None


def _is_extreme(point: NoiseScale, size: int) -> bool:
    if size < USUAL[0]:
        return point.low > WORTH_A_SECOND_LOOK * size
    return size > USUAL[1] and point.high is not None and size > WORTH_A_SECOND_LOOK * point.high
