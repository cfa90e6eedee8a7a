"""Gradients that are exactly zero, step after step."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.course import Course, courses_of, matrices_of
from sleuth.core.observation import Architecture, Role, Step
from sleuth.core.stage import Severity, Stage

# Adapters that start at zero, gates and warm-ups of a part of the loss hold gradients back for the first steps only.
LEAST_LOOKS = 6
LEAST_STEPS = 20
# Below this a loss has nothing left to ask for: every margin is kept, every advantage is zero.
SATISFIED = 1e-6


@check(
    code="T409",
    stage=Stage.TRAINING,
    severity=Severity.ERROR,
    reads=(Role.GRADIENT, Architecture),
    explains=(
        "weights-do-not-change",
        "update-too-small",
        "vanishing-gradients",
        "cannot-overfit-one-batch",
        "step-changes-nothing",
        "learns-without-input",
        "loss-not-decreasing",
        "learning-rate-too-low",
        "underfitting",
        "predicts-one-class",
        "capacity-too-small",
    ),
    title="Gradients of the first layers are exactly zero",
    why="""An exact zero is no small gradient: something on the way back multiplies by nothing. Rounding, sign, clamp beyond its
    bounds, comparison and a ReLU that is off for every sample have the slope zero, and all before them stand still.""",
    fix="""Remove the operation without a slope behind the last layer that is named here (round, sign, floor, clamp), or pass
    its gradient straight through: h = h + (torch.round(h) - h).detach().""",
    decided_by="the count of zeros in each parameter's gradient, over many steps",
    symptoms=(
        "gradients are zero",
        "grad is all zeros",
        "round has no gradient",
        "first layers do not learn",
        "clamp kills the gradient",
        "weights do not change in some layers",
    ),
)
def zero_gradients(
    seen: Seen, *, least_looks: int = LEAST_LOOKS, least_steps: int = LEAST_STEPS
) -> Iterator[Evidence | NotExamined]:
    known = matrices_of(seen.one(Architecture))
    courses = {path: c for path, c in courses_of(seen.frames(Role.GRADIENT)).items() if _is_long(c, least_looks, least_steps)}
    layers = [courses[path] for path in known if path in courses]
    if not layers:
        yield NotExamined(f"gradients of fewer than {least_looks} steps were seen, or none of a weight matrix")
        return
    if any("step-on-erased-gradient" in s.calls for s in seen.all(Step)):
        yield NotExamined("the gradients are erased before the step uses them")
        return
    # What stands still must be all that comes before some layer: a head that this phase does not train, or an expert that no
    # sample was sent to, has zeros as well.
    moving = {path.rpartition(".")[0] for path, c in courses.items() if not c.is_zero.all()}
    # A bias that has a gradient beside a weight that has none: the gradient does arrive, the inputs are blank.
    silent = [c.path.rpartition(".")[0] not in moving for c in layers]
    count = silent.index(False) if False in silent else len(silent)
    if count == 0:
        if any(silent):
            yield NotExamined(f"{layers[silent.index(True)].path} has no gradient, but layers before it have: it may be idle now")
        return
    if count == len(layers) and _may_be_done(seen):
        yield NotExamined("all gradients are zero and so is the loss: there is nothing left to learn")
        return
    yield _evidence(layers, count)


def _is_long(course: Course, looks: int, steps: int) -> bool:
    return len(course.steps) >= looks and course.steps[-1] - course.steps[0] >= steps


def _may_be_done(seen: Seen) -> bool:
    losses = [s.loss for s in seen.all(Step) if s.loss is not None]
    return not losses or abs(losses[-1]) < SATISFIED


def _evidence(layers: list[Course], count: int) -> Evidence:
    last = layers[count - 1]
    if count == len(layers):
        who = f"the gradients of all {count} weight matrices are"
        where = "between the last layer and the loss"
    else:
        who = f"the gradient of {last.path} is" if count == 1 else f"the gradients of the first {count} weight matrices are"
        where = f"between {last.path} and {layers[count].path}"
    looks = len(last.steps)
    return Evidence(
        where=last.path,
        summary=f"{who} exactly zero at each of {looks} steps that were looked at: the way back is cut {where}",
        numbers={"layers": count, "of": len(layers), "looks": looks},
        last_step=int(last.steps[-1]),
        strength=float(count),
    )
