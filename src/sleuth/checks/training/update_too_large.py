"""Each step changes the weights by a large part of themselves."""

from collections.abc import Iterator, Mapping

import numpy as np

from sleuth.checks.evidence.progress import Progress, progress_of
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.observation import Architecture, Parameter, Role, Step
from sleuth.core.reading.course import courses_of, matrices_of, together, usual_size
from sleuth.core.stage import Severity, Stage

# A thousandth a step is usual; at a tenth, ten steps can turn a layer into another one.
LARGE = 1e-1
# A watch always looks at the first four steps.
LEAST_LOOKS = 4
# Of the first steps, which tell what the rate does to weights that nothing has thrown out yet.
EARLY_LOOKS = 8
# Of the usual size of a weight: what starts below, as zeros do, must first get there, and any step is large beside it.
TINY = 0.1
# From here on each step puts another matrix in the place of the last: whatever falls is what the other layers learn.
REPLACED = 1.0
# Of the steps: the end, where a training that has learned what it can takes small steps.
LATE = 1 / 3


@check(
    code="T416",
    stage=Stage.TRAINING,
    severity=Severity.WARNING,
    reads=(Role.UPDATE, Role.WEIGHT, Architecture, Step),
    explains=(
        "loss-not-decreasing",
        "loss-diverges",
        "loss-oscillates",
        "loss-spikes",
        "loss-not-finite",
        "gradient-not-finite",
        "weights-grow",
        "units-dying",
        "underfitting",
        "predicts-one-class",
    ),
    title="Each step changes the weights by too much",
    why="""A gradient is right for a small neighbourhood only. A step that changes a layer by a tenth of itself leaves that
    neighbourhood: what earlier steps have learned is overwritten, and the loss jumps about instead of falling.""",
    fix="""Lower the learning rate about tenfold, such that ‖update‖/‖weight‖ is near 1e-3; warm up over the first steps, and
    clip gradients where single batches are to blame.""",
    decided_by="the size of each update against that of the weight, median over the steps",
    symptoms=(
        "loss jumps around",
        "loss explodes after the first step",
        "learning rate too high",
        "update to weight ratio is too large",
        "loss does not decrease",
    ),
)
def update_too_large(seen: Seen, *, large: float = LARGE, least_looks: int = LEAST_LOOKS) -> Iterator[Evidence | NotExamined]:
    known = matrices_of(seen.one(Architecture))
    ratios = _ratios(seen, least_looks)
    if not ratios:
        yield NotExamined(f"fewer than {least_looks} steps of a weight matrix were looked at in full")
        return
    # Weights that were thrown far out make later steps look small: the first ones count by themselves, too.
    first = {path: r[: max(EARLY_LOOKS, least_looks)] for path, (_, r) in ratios.items()}
    found = {path: float(max(np.median(r), np.median(first[path]))) for path, (_, r) in ratios.items()}
    high = {path: ratio for path, ratio in found.items() if ratio > large}
    if not high:
        return
    progress = progress_of(seen.all(Step))
    if progress is None:
        yield NotExamined("the updates are large, but the losses cannot tell whether that does harm")
        return
    if progress.works:
        high = {path: ratio for path in high if (ratio := _late_ratio(ratios[path], seen.all(Step))) is not None}
        if not high and not progress.falling:
            yield NotExamined("the updates were large at first, and no late step was looked at")
            return
        high = {path: ratio for path, ratio in high.items() if ratio > (REPLACED if progress.falling else large)}
    if high:
        yield _evidence(high, ratios, progress, known, large)


def _evidence(
    high: dict[str, float], ratios: "Ratios", progress: Progress, known: Mapping[str, Parameter], large: float
) -> Evidence:
    worst = max(high, key=lambda path: high[path])
    steps, course = ratios[worst]
    when = "to the end" if progress.works else "median over the steps looked at"
    course_of_loss = f"the loss went from {progress.start:.3g} to {progress.late:.3g}"
    if progress.works and not progress.falling:
        course_of_loss += " and falls no further: steps of this size jump over what is left"
    return Evidence(
        where=worst,
        summary=f"a step changes {worst} by {high[worst]:.0%} of its size ({when}), {len(high)} of "
        f"{len(ratios)} weight matrices by more than {large:.0%}; {course_of_loss}",
        numbers={"ratio": high[worst], "layers": len(high), "of": len(ratios), "shape": str(known[worst].shape)},
        series=(Series(f"update/weight of {worst}", tuple(map(float, steps)), tuple(course.tolist())),),
        first_step=int(steps[0]),
        last_step=int(steps[-1]),
        strength=high[worst] / large,
    )


Ratios = dict[str, tuple[np.ndarray, np.ndarray]]


def _late_ratio(ratio: tuple[np.ndarray, np.ndarray], steps: list[Step]) -> float | None:
    """The least of the end: a large step now and then does no lasting harm. None: none was looked at."""
    at, values = ratio
    late = values[at > steps[-1].step - LATE * (steps[-1].step - steps[0].step)]
    return float(late.min()) if len(late) else None


def _ratios(seen: Seen, least_looks: int) -> Ratios:
    updates, weights = courses_of(seen.frames(Role.UPDATE)), courses_of(seen.frames(Role.WEIGHT))
    ratios = {}
    for path, parameter in matrices_of(seen.one(Architecture)).items():
        if path not in updates or path not in weights:
            continue
        update, weight = together(updates[path], weights[path])
        chosen = update.finite & weight.finite & (weight.rms > TINY * usual_size(parameter)) & (update.rms > 0)
        if chosen.sum() >= least_looks:
            ratios[path] = (update.steps[chosen], update.rms[chosen] / weight.rms[chosen])
    return ratios
