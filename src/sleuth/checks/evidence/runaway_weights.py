"""Weights that the steps themselves drive up until something overflows."""

from dataclasses import dataclass
from itertools import pairwise

from sleuth.core.history import Seen
from sleuth.core.observation import Architecture, NotFinite, Role, Step
from sleuth.core.reading.course import courses_of, matrices_of, together, usual_size

# A healthy weight doubles or trebles over a whole training.
GROWN = 100.0
# Times the lowest loss before: steps that overshoot raise it by a factor each.
RISEN = 100.0
# Of the last losses, in a row: a single jump is a bad batch's doing.
RISES = 3
# Two such factors in a row will do: there is little time from a rate of 100 to the overflow.
STEEP = 10.0
# Times the weight: what one step may not change, and what its gradient must not be for the rate to be the reason.
LEAP = 10.0
ROLES = (Role.UPDATE, Role.WEIGHT, Role.GRADIENT)
# Of the usual size: a weight that starts near zero has to grow.
FROM = 0.5


@dataclass(frozen=True)
class Runaway:
    path: str
    factor: float
    first: float
    last: float
    start: float  # losses
    end: float
    step: int
    steps: int  # since the loss was at its lowest
    rate: float | None


def runaway(seen: Seen) -> Runaway | None:
    """None where nothing overflowed, or where weights and loss did not grow together until then."""
    met = next(iter(seen.all(NotFinite)), None)
    if met is None or any(n.what in ("input", "target") for n in seen.all(NotFinite)):
        return None
    before = [s for s in seen.all(Step) if s.step <= met.step and s.loss is not None and s.optimiser == met.optimiser]
    losses = [s.loss for s in before if s.loss is not None]
    grown = _grown(seen, met.step)
    if grown is None or grown[1] < GROWN or not losses or min(losses) < 0:
        return None
    path, factor, first, last = grown
    if not _rising(losses) and not _leapt(seen, path, met.step):
        return None
    low = min(losses)
    lowest = max(s.step for s in before if s.loss == low)
    return Runaway(path, factor, first, last, low, losses[-1], met.step, met.step - lowest, before[-1].lr)


def _rising(losses: list[float]) -> bool:
    rises = [b / max(a, 1e-30) for a, b in pairwise(losses[-RISES - 1 :])]
    steep = len(rises) > 1 and min(rises[-2:]) > STEEP
    return steep or (len(rises) == RISES and min(rises) > 1 and losses[-1] >= RISEN * min(losses))


def _leapt(seen: Seen, path: str, step: int) -> bool:
    """A single step of an ordinary gradient was many times the weight."""
    frames = [courses_of(f for f in seen.frames(role) if f.step < step).get(path) for role in ROLES]
    if any(course is None for course in frames):
        return False
    update, weight, gradient = together(*(c for c in frames if c is not None))
    sound = update.finite & weight.finite & gradient.finite
    leap = (update.rms > LEAP * weight.rms) & (gradient.rms < LEAP * weight.rms) & sound
    return bool(leap.any())


def _grown(seen: Seen, step: int) -> tuple[str, float, float, float] | None:
    """The matrix that grew most since it was first looked at."""
    found = []
    architecture = seen.maybe(Architecture)
    matrices = matrices_of(architecture) if architecture is not None else {}
    for path, course in courses_of(f for f in seen.frames(Role.WEIGHT) if f.step <= step).items():
        sizes = course.rms[course.finite]
        if path in matrices and len(sizes) > 1:
            first = max(float(sizes[0]), FROM * usual_size(matrices[path]))
            found.append((path, float(sizes[-1]) / max(first, 1e-30), float(sizes[0]), float(sizes[-1])))
    return max(found, key=lambda entry: entry[1], default=None)
