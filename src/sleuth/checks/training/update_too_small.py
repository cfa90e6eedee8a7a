"""The steps hardly change the weights, and the loss stands still."""

from collections.abc import Iterator

import numpy as np

from sleuth.checks.evidence.progress import progress_of
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.observation import Architecture, Role, Step
from sleuth.core.reading.course import Course, courses_of, matrices_of, together
from sleuth.core.stage import Severity, Stage

# A thousandth a step is usual; at this one a layer needs a hundred thousand steps to become another one.
SMALL = 1e-5
# A watch always looks at the first four steps; that the loss stands still is seen at all of them.
LEAST_LOOKS = 4
LEAST_STEPS = 60
# Of the layers: a few slow ones are the business of vanishing-gradients, or were meant, or have a rate of their own.
MOST_LAYERS = 0.5
# All steps in one direction would not change an idle layer by more than this part of itself, and a busy one by more than that.
IDLE = 0.01
BUSY = 0.1
# Times slower than the busy layers, both as it moves and as it moves for its gradient: where an optimiser rescales gradients only
# the rate makes the first so, elsewhere only the rate makes the second so.
SLOWER = 30.0
# Of the largest rate that was seen: what a schedule does at its ends is no illness.
MAIN_RATE = 0.5
# More than so much above the first: a warm-up is not over yet.
RISING = 1.05
# Of the first loss: a training that ends so far above it did not stand still, it was thrown off.
RISEN = 0.5
# Largest distance from the mean in standard deviations: 1.73 for weights drawn evenly from an interval. Training draws tails.
EVEN = 1.8


@check(
    code="T417",
    stage=Stage.TRAINING,
    severity=Severity.WARNING,
    reads=(Role.UPDATE, Role.WEIGHT, Architecture, Step),
    explains=(
        "loss-not-decreasing",
        "underfitting",
        "predicts-one-class",
        "cannot-overfit-one-batch",
        "learns-without-input",
    ),
    title="The steps hardly change the weights",
    why="""Each step should change a layer by about a thousandth of itself. At a hundred-thousandth an untrained model stays
    untrained: the loss stands still although every gradient is right.""",
    fix="""Raise the learning rate, tenfold at a time, until ‖update‖/‖weight‖ is near 1e-3; look for a loss that is divided by a
    large number or gradients that are clipped to a tiny norm.""",
    decided_by="the size of each update against that of the weight, median over the steps",
    symptoms=(
        "loss does not decrease",
        "weights hardly change",
        "learning rate too low",
        "update to weight ratio is tiny",
        "training is too slow",
    ),
)
def update_too_small(
    seen: Seen, *, small: float = SMALL, least_looks: int = LEAST_LOOKS, least_steps: int = LEAST_STEPS
) -> Iterator[Evidence | NotExamined]:
    steps = seen.all(Step)
    if len(steps) < least_steps:
        yield NotExamined(f"only {len(steps)} steps were seen")
        return
    rates = [s.lr for s in steps if s.lr is not None]
    ratios = _ratios(seen, least_looks, steps)
    if not ratios:
        yield NotExamined(f"fewer than {least_looks} steps of a weight matrix were looked at at the full learning rate")
        return
    low = {path: float(np.median(r)) for path, (_, r) in ratios.items() if np.median(r) < small}
    progress = progress_of(steps)
    idle = _idle(seen, ratios, low, steps)
    if idle and _is_fresh(seen):
        yield _part(ratios, idle, len(steps))
        return
    if len(low) <= MOST_LAYERS * len(ratios):
        return
    if progress is None:
        yield NotExamined("the updates are small, but the losses cannot tell whether that does harm")
    elif not progress.still or progress.works:  # what was learned at once leaves little to do
        return
    elif rates and rates[-1] > RISING * rates[0]:
        yield NotExamined("the updates are small, but the learning rate still rises")
    elif not _is_fresh(seen):
        yield NotExamined("the updates are small, but the weights were trained before: small steps may be meant")
    elif progress.late - progress.start <= RISEN * abs(progress.start):
        yield _evidence(ratios, low, len(steps), progress.start, progress.late)


def _idle(seen: Seen, ratios: "Ratios", low: dict[str, float], steps: list[Step]) -> dict[str, float]:
    """Fresh layers that stay what they are beside others that do not, and not for want of a gradient: their rate is to blame."""
    count = steps[-1].step - steps[0].step + 1
    roles = [courses_of(seen.frames(role)) for role in (Role.UPDATE, Role.GRADIENT, Role.WEIGHT)]
    busy = [path for path, (_, r) in ratios.items() if np.median(r) * count > BUSY and path in roles[1]]
    slow = [path for path, ratio in low.items() if ratio * count < IDLE and path in roles[1]]
    if not busy or not slow:
        return {}
    updates, gains = zip(*(_pace(roles[0][path], roles[1][path]) for path in busy), strict=True)
    found = {}
    for path in slow:
        update, gain = _pace(roles[0][path], roles[1][path])
        by_rate = SLOWER * update < np.median(updates) and SLOWER * gain < np.median(gains)
        if by_rate and (_is_even(roles[2][path]) or _has_zero_bias(roles[2][path], roles[2])):
            found[path] = low[path]
    return found


def _pace(update: Course, gradient: Course) -> tuple[float, float]:
    """How far a step goes, and how far for its gradient."""
    update, gradient = together(update, gradient)
    chosen = update.finite & gradient.finite & (gradient.rms > 0)
    if not chosen.any():
        return float(np.median(update.rms)), np.inf
    return float(np.median(update.rms[chosen])), float(np.median(update.rms[chosen] / gradient.rms[chosen]))


def _part(ratios: "Ratios", idle: dict[str, float], count: int) -> Evidence:
    path = min(idle, key=lambda p: idle[p])
    steps, course = ratios[path]
    return Evidence(
        where=path,
        summary=f"a step changes {path} by {idle[path]:.1e} of its size: after {count} steps it is as it was initialised, "
        f"although its gradient is not small; so it is with {len(idle)} of {len(ratios)} weight matrices, the others learn",
        numbers={"ratio": idle[path], "layers": len(idle), "of": len(ratios)},
        series=(Series(f"update/weight of {path}", tuple(map(float, steps)), tuple(course.tolist())),),
        fix=f"Raise the learning rate of the parameter group that holds {path}: a small one spares what was trained before, and "
        "this was not.",
        first_step=int(steps[0]),
        last_step=int(steps[-1]),
        strength=SMALL / max(idle[path], 1e-12),
    )


def _evidence(ratios: "Ratios", low: dict[str, float], count: int, start: float, late: float) -> Evidence:
    path = min(low, key=lambda p: low[p])
    typical = float(np.median(list(low.values())))
    steps, course = ratios[path]
    return Evidence(
        where=path,
        summary=f"a step changes a weight matrix by {typical:.1e} of its size (median; {path}: {low[path]:.1e}), and over "
        f"{count} steps the loss stayed where it was: {start:.4g}, {late:.4g}",
        numbers={"ratio": typical, "layers": len(low), "of": len(ratios), "start": start, "late": late},
        series=(Series(f"update/weight of {path}", tuple(map(float, steps)), tuple(course.tolist())),),
        first_step=int(steps[0]),
        last_step=int(steps[-1]),
        strength=SMALL / max(typical, 1e-12),
    )


Ratios = dict[str, tuple[np.ndarray, np.ndarray]]


def _ratios(seen: Seen, least_looks: int, steps: list[Step]) -> Ratios:
    """At steps with about the main learning rate."""
    rates = {s.step: s.lr for s in steps if s.lr is not None}
    highest = max(rates.values(), default=0.0)
    slow = {step for step, rate in rates.items() if rate < MAIN_RATE * highest}
    updates, weights = courses_of(seen.frames(Role.UPDATE)), courses_of(seen.frames(Role.WEIGHT))
    ratios = {}
    for path in matrices_of(seen.one(Architecture)):
        if path not in updates or path not in weights:
            continue
        update, weight = together(updates[path], weights[path])
        # What does not move at all is the business of weights-do-not-change and zero-gradients.
        chosen = update.finite & weight.finite & (weight.rms > 0) & (update.rms > 0) & ~np.isin(update.steps, list(slow))
        if chosen.sum() >= least_looks:
            ratios[path] = (update.steps[chosen], update.rms[chosen] / weight.rms[chosen])
    return ratios


def _is_fresh(seen: Seen) -> bool:
    """Do the weights look as an initialisation leaves them, at least half of them? Biases of zero, or even spread."""
    architecture = seen.one(Architecture)
    courses = courses_of(seen.frames(Role.WEIGHT))
    scales = [courses[p.path] for p in architecture.parameters if p.family in ("norm", "batchnorm") and p.path in courses]
    if any(not _is_constant(course) for course in scales):
        return False
    matrices = [courses[path] for path in matrices_of(architecture) if path in courses]
    fresh = [c for c in matrices if _is_even(c) or _has_zero_bias(c, courses)]
    return 2 * len(fresh) >= len(matrices)


def _is_constant(course: Course) -> bool:
    return bool(course.table[0, 4] - course.table[0, 3] <= 1e-3)


def _is_even(course: Course) -> bool:
    count, mean, m2, low, high = course.table[0, :5]
    spread = (m2 / max(count, 1)) ** 0.5
    return bool(max(high - mean, mean - low) <= EVEN * spread)


def _has_zero_bias(course: Course, courses: dict[str, Course]) -> bool:
    parent = course.path.rpartition(".")[0]
    bias = courses.get(f"{parent}.bias" if parent else "bias")
    return bias is not None and bool(bias.is_zero[0])
