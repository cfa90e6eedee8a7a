"""Weights that grow by the same factor again and again."""

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from sleuth.checks.evidence.progress import progress_of
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Architecture, Role, Step
from sleuth.core.reading.course import Course, courses_of, matrices_of, usual_size
from sleuth.core.stage import Severity, Stage

# Healthy weights double or treble over a training, and slow down on the way.
GROWN = 10.0
# A watch always looks at the first four steps; two later ones tell the middle and the end.
LEAST_LOOKS = 6
LEAST_STEPS = 40
# Of the growth in the first half, as a logarithm: growth like the root of the steps, or along a line, falls far below it.
NOT_SLOWING = 0.7
# In the second half alone.
STILL_GROWING = 3.0
# Of the usual size: a weight that starts near zero has to grow.
FROM = 0.5
# Without a floor the loss gains as much by the second half of the growth as by the first; with one it gains ever less.
UNDIMINISHED = 0.7
# Healthy weights double or treble: beyond it, growth that the loss goes on rewarding is no learning.
REWARDED = 4.0
# Times as far below zero as it began from it: a likelihood may cross zero, but does not leave it behind like that.
FAR_BELOW = 3.0
# Losses about a look that tell the loss there.
AROUND = 15
# A weight that is divided by its own norm may have any size.
RESCALED = ("weight_v", "weight_orig", "original1", "original0")


@check(
    code="T429",
    stage=Stage.TRAINING,
    severity=Severity.WARNING,
    reads=(Role.WEIGHT, Architecture, Step),
    explains=(
        "loss-not-finite",
        "gradient-not-finite",
        "loss-diverges",
        "loss-oscillates",
        "loss-spikes",
        "loss-not-decreasing",
        "overfitting",
        "stopped-too-early",
        "underfitting",
        "predicts-one-class",
    ),
    title="Weights grow without bound",
    why="""Something rewards large weights more than it punishes errors: a penalty with the wrong sign, a score without a bound,
    a step that climbs. Growth by the same factor again and again ends in overflow.""",
    fix="""Check the sign of every term that is added to the loss (a penalty is added, not subtracted), bound what is maximised,
    and use weight decay (optim.AdamW(model.parameters(), weight_decay=0.01)).""",
    decided_by="the size of each weight matrix over the steps",
    symptoms=(
        "weights explode",
        "weight norm keeps growing",
        "loss goes to minus infinity",
        "regularisation has the wrong sign",
        "weights become huge",
    ),
)
def weights_grow(
    seen: Seen, *, grown: float = GROWN, least_looks: int = LEAST_LOOKS, least_steps: int = LEAST_STEPS
) -> Iterator[Evidence | NotExamined]:
    matrices = matrices_of(seen.one(Architecture))
    courses = courses_of(seen.frames(Role.WEIGHT))
    long = [courses[path] for path in matrices if path in courses and _is_long(courses[path], least_looks, least_steps)]
    if not long:
        yield NotExamined(f"the weights of fewer than {least_looks} steps were looked at")
        return
    normalised = _before_norms(seen)
    free = [c for c in long if matrices[c.path].layer not in normalised and not c.path.endswith(RESCALED)]
    sizes = {c.path: usual_size(matrices[c.path]) for c in free}
    steps = seen.all(Step)
    progress = progress_of(steps)
    rewarded = [(c, f) for c in free if progress is not None and (f := _rewarded_growth(c, sizes[c.path], steps)) > REWARDED]
    found = [(c, f) for c in free if (f := _growth(c, sizes[c.path])) > grown]
    if rewarded:
        yield _evidence(rewarded, len(long), grown, "and the loss, far below zero, goes on gaining by it")
    elif found and progress is None:
        yield NotExamined("some weights grow, but the losses cannot tell whether that does harm")
    elif found and progress is not None and not progress.works:
        yield _evidence(found, len(long), grown, "and does not slow down")


def _is_long(course: Course, looks: int, steps: int) -> bool:
    return len(course.steps) >= looks and course.steps[-1] - course.steps[0] >= steps


def _growth(course: Course, usual: float) -> float:
    """The factor by which it grew, where it grows on as it did; otherwise 0."""
    sizes = course.rms[course.finite]
    steps = course.steps[course.finite]
    if len(sizes) < LEAST_LOOKS:
        return 0.0
    middle = sizes[np.searchsorted(steps, (steps[0] + steps[-1]) / 2)]
    start = max(sizes[0], FROM * usual)
    first, second = math.log(max(middle / start, 1.0)), math.log(max(sizes[-1] / max(middle, 1e-30), 1e-30))
    lasting = second >= max(NOT_SLOWING * first, math.log(STILL_GROWING))
    return float(sizes[-1] / start) if lasting else 0.0


def _before_norms(seen: Seen) -> set[str]:
    """Layers whose output a normalisation takes: it undoes any size."""
    families = {layer.path: layer.family for layer in seen.one(Architecture).layers}
    order = [tensor.path for tensor in seen.first(Role.ACTIVATION)]
    return {a for a, b in pairwise(order) if families.get(b) in ("norm", "batchnorm")}


def _rewarded_growth(course: Course, usual: float, steps: list[Step]) -> float:
    """The factor by which it grew, where a loss far below zero falls with it and has no floor; otherwise 0."""
    sizes, at = course.rms[course.finite], course.steps[course.finite]
    heard = [s for s in steps if s.loss is not None]
    losses, when = np.array([s.loss for s in heard]), np.array([s.step for s in heard])
    if len(sizes) < LEAST_LOOKS or len(losses) < AROUND:
        return 0.0
    level = [float(np.median(losses[np.argsort(np.abs(when - step), kind="stable")[:AROUND]])) for step in at]
    start = max(sizes[0], FROM * usual)
    middle = 1 + int(np.argmin(np.abs(sizes[1:-1] - (start + sizes[-1]) / 2)))  # half of the growth, whenever that was
    if not (sizes[0] < sizes[middle] < sizes[-1] and level[-1] < -FAR_BELOW * abs(level[0])):
        return 0.0
    first = (level[0] - level[middle]) / (sizes[middle] - sizes[0])
    second = (level[middle] - level[-1]) / (sizes[-1] - sizes[middle])
    return float(sizes[-1] / start) if second > UNDIMINISHED * first > 0 else 0.0


def _evidence(found: list[tuple[Course, float]], count: int, grown: float, what: str) -> Evidence:
    course, factor = max(found, key=lambda pair: pair[1])
    first, last = int(course.steps[0]), int(course.steps[-1])
    return Evidence(
        where=course.path,
        summary=f"{course.path} grew {factor:.3g}-fold from step {first} to step {last} (size {course.rms[0]:.2g} to "
        f"{course.rms[-1]:.2g}) {what}; {len(found)} of {count} weight matrices do so",
        numbers={"factor": factor, "first": float(course.rms[0]), "last": float(course.rms[-1]), "layers": len(found)},
        series=(course.series,),
        first_step=first,
        last_step=last,
        strength=factor / grown,
    )
