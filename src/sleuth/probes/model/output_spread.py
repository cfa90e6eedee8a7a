"""How far the outputs of different samples lie apart: at the start, and after some steps where they hardly differ."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.runtime.tree import leaves
from sleuth.core.stage import Stage
from sleuth.core.subject import Parts
from sleuth.core.trial import OutputSpread
from sleuth.probes.fingerprints.fingerprint import fingerprints
from sleuth.probes.lab.changed_inputs import first_samples, input_arrays, outputs_of, rms
from sleuth.probes.lab.probe import Lab, probe

SAMPLES = 64
# With batches of one, several make up for it.
BATCHES = 8
LEAST_SAMPLES = 4
# Outputs that lie further apart than this share of all they could be measured by need no second look.
NEAR = 0.01
# Last layers that start at zero on purpose have opened up long before the last of these; most do at the first.
STEPS = (5, 10, 20, 40)
# Each step moves a matrix by this share of its size, or of a tenth where it has none yet.
STEP_SHARE = 0.02
SMALLEST_SIZE = 0.1


@dataclass(frozen=True)
class Measured:
    samples: int
    spread: float
    size: float


@probe(title="Comparing the outputs of different samples", stage=Stage.MODEL, rank=5, emits=(OutputSpread,), needs=("forward",))
def spreading(lab: Lab) -> Iterator[Observation]:
    start = lab.bench.snapshot()
    try:
        batches, found = _first(lab)
        after, steps, why = None, 0, None
        if _near(lab, batches, found):
            after, steps, why = _trained(lab, batches)
        yield OutputSpread(
            samples=found.samples,
            spread=found.spread,
            size=found.size,
            inputs_differ=_distinct([list(input_arrays(lab, batch.inputs).values()) for batch in batches]) > 1,
            targets=_targets(lab, batches),
            trained_spread=after.spread if after else None,
            trained_size=after.size if after else None,
            steps=steps,
            why_untrained=why,
        )
    finally:
        lab.bench.restore(start)


def _first(lab: Lab) -> tuple[list[Parts], Measured]:
    """Some samples, and how far their outputs lie apart; whole batches where a model wants all, such as a graph net."""
    taken: list[Parts] = []
    samples = 0
    for batch in lab.train.batches[:BATCHES]:
        taken.append(batch)
        samples += next((len(v) for v in input_arrays(lab, batch.inputs).values() if v.ndim), 0)
        if samples >= SAMPLES:
            break
    few = [first_samples(lab, batch, SAMPLES) for batch in taken]
    try:
        return few, _measure(lab, few)
    except (ValueError, RuntimeError, IndexError, AssertionError, TypeError):
        return taken, _measure(lab, taken)


def _near(lab: Lab, batches: list[Parts], found: Measured) -> bool:
    """By whatever measure the check may take: the outputs' own size, that of real targets, or one."""
    targets = [lab.adapter.values(a) for b in batches for _, a in leaves(b.target, lab.adapter.is_array)]
    reference = max((float(np.std(t)) for t in targets if t.size and t.dtype.kind == "f"), default=0.0)
    return found.spread <= NEAR * max(found.size, reference, 1.0)


def _measure(lab: Lab, batches: list[Parts], training: bool = False) -> Measured:
    """Of the output that varies most, should the model return several."""
    lab.bench.set_training(training)
    passes = [outputs_of(lab, batch) for batch in batches]
    best: Measured | None = None
    for path, first in passes[0].items():
        alike = [p[path] for p in passes if path in p and p[path].shape[1:] == first.shape[1:] and p[path].ndim]
        values = np.concatenate(alike) if alike else first.reshape(1, -1)
        if not np.isfinite(values).all():
            raise Unsupported("the outputs are not finite")
        found = Measured(len(values), rms(values - values.mean(axis=0)), rms(values))
        if found.samples >= LEAST_SAMPLES and (best is None or _ratio(found) > _ratio(best)):
            best = found
    if best is None:
        raise Unsupported("the outputs of single samples cannot be told apart")
    return best


def _ratio(measured: Measured) -> float:
    return measured.spread / measured.size if measured.size > 0 else 0.0


def _trained(lab: Lab, batches: list[Parts]) -> tuple[Measured | None, int, str | None]:
    """The widest spread on the way of plain descent, in either mode, at a rate of its own: the user's may be zero, or still
    warming up."""
    if "backward" in lab.failed:
        return None, 0, lab.failed["backward"]
    found = _measure(lab, batches, training=True)
    step = 0
    while step < STEPS[-1] and _near(lab, batches, found):
        lab.tick()
        step += 1
        lab.bench.set_training(True)
        gradients = lab.bench.gradients(lab.train.batches[step % len(lab.train.batches)]).by_path
        for path, gradient in gradients.items():
            if gradient is not None:
                _descend(lab, path, lab.adapter.values(gradient).astype(np.float64))
        if step in STEPS:
            found = max(found, _measure(lab, batches), _measure(lab, batches, training=True), key=lambda m: m.spread)
    return found, step, None


def _descend(lab: Lab, path: str, gradient: np.ndarray) -> None:
    values = lab.adapter.values(lab.bench.parameter(path)).astype(np.float64)
    size = rms(gradient) if gradient.size and np.isfinite(gradient).all() else 0.0
    if size > 0:
        lab.bench.write(path, values - STEP_SHARE * max(rms(values), SMALLEST_SIZE) * gradient / size)


def _targets(lab: Lab, batches: list[Parts]) -> int | None:
    arrays = [[lab.adapter.values(a) for _, a in leaves(b.target, lab.adapter.is_array)] for b in batches]
    return _distinct(arrays) if all(arrays) else None


def _distinct(batches: list[list[np.ndarray]]) -> int:
    """Different samples; arrays without one entry a sample are left out."""
    prints = []
    for arrays in batches:
        size = max((len(a) for a in arrays if a.ndim), default=0)
        rows = [a for a in arrays if a.ndim and len(a) == size]
        prints += [fingerprints(rows)[0]] if rows and size else []
    return len(np.unique(np.concatenate(prints))) if prints else 0
