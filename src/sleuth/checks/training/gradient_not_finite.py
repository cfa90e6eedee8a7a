"""A gradient became NaN or Inf while the loss was finite."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Frame, LossCall, Role
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.statistics import Statistics


@check(
    code="T402",
    stage=Stage.TRAINING,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=(Role.GRADIENT,),
    explains=("loss-not-finite", "loss-diverges"),
    title="A gradient is not a finite number",
    why="""The loss is finite, but its derivative is not: a square root at zero, a norm written by hand at zero, the unused
    branch of a where. One step writes NaN into the weights.""",
    fix="""Use torch.linalg.norm instead of a square root of a sum of squares, add a small constant inside the root, and make
    the unused branch of a where harmless before choosing.""",
    decided_by="the count of NaN and Inf in each parameter's gradient",
    symptoms=(
        "gradients are nan",
        "loss goes down then nan",
        "weights become nan after a step",
        "sqrt of zero gives nan gradient",
    ),
)
def gradient_not_finite(seen: Seen) -> Iterator[Evidence | NotExamined]:
    if any(call.value is None for call in seen.all(LossCall)):
        yield NotExamined("the loss itself is not finite")
        return
    for frame in seen.frames(Role.GRADIENT):
        bad = {path: s for path, s in frame.statistics().items() if not s.all_finite}
        if bad:
            yield _evidence(frame, bad)
            return


def _evidence(frame: Frame, bad: dict[str, Statistics]) -> Evidence:
    path, statistics = next(iter(bad.items()))
    others = f" and those of {len(bad) - 1} more parameters" if len(bad) > 1 else ""
    when = f" at step {frame.step}" if frame.step else " of the untrained model"
    return Evidence(
        where=path,
        summary=f"the gradient of {path}{others}{when} holds {statistics.nans} NaN and {statistics.infs} Inf "
        f"among {statistics.count} values, while the loss is finite",
        numbers={"parameters": len(bad), "nans": statistics.nans, "infs": statistics.infs},
        first_step=frame.step or None,
        last_step=frame.step or None,
    )
