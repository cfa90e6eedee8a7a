"""Compares gradients with central differences, in float64, along random directions.

All parameters are moved together first: where that agrees, every one of them is right and a dozen passes were enough.
Only a mismatch is worth the search for the parameter behind it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth.core.contract.adapter import Bench, Dissects, Gradients
from sleuth.core.errors import Unsupported
from sleuth.core.location import Location
from sleuth.core.observation import Observation
from sleuth.core.stage import Stage
from sleuth.core.subject import Parts
from sleuth.core.trial import GradientCheck, GradientError
from sleuth.probes.lab.changed_inputs import first_samples
from sleuth.probes.lab.loss_around_weights import Surface, direction_in, size_of
from sleuth.probes.lab.probe import Lab, probe
from sleuth.probes.model.gradient_repeats import repeated
from sleuth.probes.model.gradient_terms import explained

SAMPLES = 8
MOST_PARAMETERS = 30
DIRECTIONS = 3
# Relative to the size of the weights: the largest still cross few kinks, the smallest stay above the rounding of float64.
STEP_SIZES = (1e-3, 1e-4, 1e-5, 1e-6)
# Off the exact zeros of fresh biases, where ReLU and absolute value have no derivative.
JITTER = 1e-2
# Agreement that needs no search, and a slope whose two sides or step sizes agree no better is no slope.
RIGHT = 1e-4
ROUGH = 0.1
WAVERING = 1e-2
# A change of the loss below this share of its size is rounding, whatever the gradient says.
FLAT = 1e-12


@probe(
    title="Checking gradients numerically",
    stage=Stage.MODEL,
    rank=6,
    emits=(GradientCheck,),
    needs=("forward", "loss", "backward"),
)
def gradient_check(lab: Lab) -> Iterator[Observation]:
    surface = surface_of(lab)
    again = repeated(lab, surface)
    line, by_hand = line_of(lab, surface) if again else None, isinstance(lab.adapter, Dissects)
    together = [compare(lab, surface, tuple(surface.gradients)) for _ in range(2)]
    smooth = [s for s in together if s is not None]
    if smooth and all(s.error <= max(RIGHT, 3 * s.noise) and s.noise < WAVERING for s in smooth):
        fine = tuple(summed(path, smooth) for path in list(surface.gradients)[:MOST_PARAMETERS])
        yield GradientCheck(fine, True, again, line, by_hand)
        return
    found = []
    for path in evenly(list(surface.gradients)):
        slopes = [compare(lab, surface, (path,)) for _ in range(DIRECTIONS)]
        if all(s is not None for s in slopes):
            found.append(summed(path, [s for s in slopes if s is not None]))
    found = explained(lab, surface, found, lambda e: e.relative_error > max(RIGHT, 3 * e.noise))
    yield GradientCheck(tuple(found), True, again, line, by_hand)


def line_of(lab: Lab, surface: Surface) -> Location | None:
    """Of the backward that makes the first gradient."""
    path = next(iter(surface.gradients))
    return lab.adapter.backward_line(surface.bench, path, upstream=False) if isinstance(lab.adapter, Dissects) else None


@dataclass(frozen=True)
class Slope:
    analytic: float
    numeric: float
    noise: float  # by which the numerical slope wavers between two step sizes, relatively

    @property
    def error(self) -> float:
        return abs(self.analytic - self.numeric) / max(abs(self.analytic), abs(self.numeric))


def surface_of(lab: Lab) -> Surface:
    bench = lab.bench.double()
    rng = lab.rng
    for path in bench.paths():
        values = lab.adapter.values(bench.parameter(path)).astype(np.float64)
        bench.write(path, values + JITTER * size_of(values) * rng.normal(size=values.shape))
    state = bench.snapshot()
    batch, result = _gradients(lab, bench, state)
    reached = {path: lab.adapter.values(g).astype(np.float64).copy() for path, g in result.by_path.items() if g is not None}
    if not reached:
        raise Unsupported("the loss reaches no parameter")
    if not np.isfinite(result.loss) or not all(np.isfinite(g).all() for g in reached.values()):
        raise Unsupported("loss or gradients in float64 are not finite")
    weights = {path: lab.adapter.values(bench.parameter(path)).astype(np.float64).copy() for path in reached}
    return Surface(bench, batch, state, weights, reached, abs(result.loss), rng)


def _gradients(lab: Lab, bench: Bench, state: Any) -> tuple[Parts, Gradients]:
    """Of a few samples; of all where the model wants all, such as the nodes of one graph."""
    error: Exception | None = None
    for batch in (first_samples(lab, lab.batch, SAMPLES), lab.batch):
        bench.restore(state)
        bench.set_training(False)
        try:
            return batch, bench.gradients(batch)
        except Exception as raised:
            error = raised
    if isinstance(error, Unsupported):
        raise error
    reason = (str(error).splitlines() or [""])[0]
    raise Unsupported(f"the model does not compute in float64: {type(error).__name__}: {reason}")


def compare(lab: Lab, surface: Surface, paths: tuple[str, ...]) -> Slope | None:
    """Slopes along one direction; None where the loss is flat or has a kink there."""
    lab.tick()
    direction = {path: direction_in(surface, path) for path in paths}
    analytic = float(sum(np.vdot(surface.gradients[path], d) for path, d in direction.items()))
    middle = surface.at({})
    numeric = []
    for h in STEP_SIZES:
        lab.tick()
        up, down = (surface.at({p: surface.weights[p] + s * h * d for p, d in direction.items()}) for s in (1, -1))
        if not np.isfinite([up, down]).all():
            return None
        sides = (up - middle) / h, (middle - down) / h
        numeric.append((sum(sides) / 2, abs(sides[0] - sides[1]), FLAT * max(surface.size, FLAT) / h))
    # Two neighbouring step sizes that agree best are neither too coarse nor lost in rounding.
    best = min(range(1, len(numeric)), key=lambda i: abs(numeric[i][0] - numeric[i - 1][0]))
    slope, kink, rounding = numeric[best]
    scale = max(abs(slope), abs(analytic))
    if abs(slope) <= rounding or scale == 0 or kink > ROUGH * abs(slope):
        return None
    noise = abs(slope - numeric[best - 1][0]) / scale
    return Slope(analytic, slope, noise) if noise <= ROUGH else None


def evenly(paths: list[str], most: int = MOST_PARAMETERS) -> list[str]:
    """Spread evenly over the model, first and last included."""
    if len(paths) <= most:
        return paths
    return [paths[i] for i in np.linspace(0, len(paths) - 1, most).round().astype(int)]


def summed(path: str, slopes: list[Slope]) -> GradientError:
    """The mildest direction speaks: a mismatch counts only where every direction shows it."""
    mildest = min(slopes, key=lambda s: s.error)
    ratios = [s.analytic / s.numeric for s in slopes]
    steady = max(ratios) - min(ratios) < 1e-3 * abs(float(np.mean(ratios)))
    noise = max(s.noise for s in slopes)
    return GradientError(path, mildest.error, mildest.analytic, mildest.numeric, noise, ratios[0] if steady else None)
