"""Each step changes the weights by a large part of themselves."""

from collections.abc import Iterator

import numpy as np

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.course import courses_of, matrices_of, together, usual_size
from sleuth.core.finding import Series
from sleuth.core.observation import Architecture, Role, Step
from sleuth.core.progress import progress_of
from sleuth.core.stage import Severity, Stage

# A thousandth a step is usual; at a tenth, ten steps can turn a layer into another one.
LARGE = 1e-1
# A watch always looks at the first four steps.
LEAST_LOOKS = 4
# Of the usual size of a weight: what starts below, as zeros do, must first get there, and any step is large beside it.
TINY = 0.1


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
    first = {path: r[: max(len(r) // 4, least_looks)] for path, (_, r) in ratios.items()}
    found = {path: float(max(np.median(r), np.median(first[path]))) for path, (_, r) in ratios.items()}
    high = {path: ratio for path, ratio in found.items() if ratio > large}
    if not high:
        return
    progress = progress_of(seen.all(Step))
    if progress is None:
        yield NotExamined("the updates are large, but the losses cannot tell whether that does harm")
        return
    if progress.works:
        return
    worst = max(high, key=lambda path: high[path])
    steps, course = ratios[worst]
    yield Evidence(
        where=worst,
        summary=f"a step changes {worst} by {high[worst]:.0%} of its size (median over the steps looked at), {len(high)} of "
        f"{len(found)} weight matrices by more than {large:.0%}; the loss went from {progress.start:.3g} to {progress.late:.3g}",
        numbers={"ratio": high[worst], "layers": len(high), "of": len(found), "shape": str(known[worst].shape)},
        series=(Series(f"update/weight of {worst}", tuple(map(float, steps)), tuple(course.tolist())),),
        first_step=int(steps[0]),
        last_step=int(steps[-1]),
        strength=high[worst] / large,
    )


def _ratios(seen: Seen, least_looks: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
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
