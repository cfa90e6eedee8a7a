"""Gradients that are exactly zero, step after step."""

from collections.abc import Iterator

from sleuth.checks.evidence.unmoved_parameters import decayed_by, is_unmoved
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Architecture, CallKind, Ending, Parameter, Role, Step
from sleuth.core.reading.course import Course, courses_of, matrices_of
from sleuth.core.stage import Confidence, Severity, Stage

# Adapters that start at zero, gates and warm-ups of a part of the loss hold gradients back for the first steps only.
LEAST_LOOKS = 6
LEAST_STEPS = 20
# A shorter training may end before a part of its loss sets in.
WHOLE_TRAINING = 100
# Below this a loss has nothing left to ask for: every margin is kept, every advantage is zero.
SATISFIED = 1e-6
# Rows that are asked for seldom; scales of inputs that are all the same.
LEFT_OUT = ("embedding", "norm", "batchnorm")


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
    title="Gradients are exactly zero, step after step",
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
        "a head does not learn",
        "a parameter stays at its start",
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
    if any(CallKind.STEP_ON_ERASED_GRADIENT in s.calls for s in seen.all(Step)):
        yield NotExamined("the gradients are erased before the step uses them")
        return
    # What stands still must be all that comes before some layer: a head that this phase does not train, or an expert that no
    # sample was sent to, has zeros as well.
    moving = {path.rpartition(".")[0] for path, c in courses.items() if not c.is_zero.all()}
    # A bias that has a gradient beside a weight that has none: the gradient does arrive, the inputs are blank.
    silent = [c.path.rpartition(".")[0] not in moving for c in layers]
    count = silent.index(False) if False in silent else len(silent)
    if count == 0:
        if (left_out := _left_out(seen, courses, moving)) is not None:
            yield left_out
        elif any(silent):
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


def _left_out(seen: Seen, courses: dict[str, Course], moving: set[str]) -> Evidence | None:
    """What the loss reaches, but never moves, from the start of a training to its end. It may be meant, so it is a hint."""
    decay = decayed_by(seen)
    # Until then it may wait for its turn.
    if decay is None or not any(e.how in ("completed", "stopped") for e in seen.all(Ending)):
        return None
    weights, outputs = courses_of(seen.frames(Role.WEIGHT)), courses_of(seen.frames(Role.ACTIVATION))
    known = (p for p in seen.one(Architecture).parameters if p.trainable and p.path in courses and p.path in weights)
    still = [
        p
        for p in known
        if courses[p.path].is_zero.all()
        and _is_long(courses[p.path], LEAST_LOOKS, WHOLE_TRAINING)
        and _counts(p, moving, outputs)
        and is_unmoved(weights[p.path].at(courses[p.path].steps), decay)
    ]
    return _never_moved(still, courses[still[0].path]) if still else None


def _counts(parameter: Parameter, moving: set[str], outputs: dict[str, Course]) -> bool:
    """Is it expected to learn? A shift cancels out where differences are compared; a layer must have put something out."""
    if parameter.path.rpartition(".")[2].startswith("bias") or parameter.family in LEFT_OUT:
        return False
    if _is_lone(parameter):
        return True
    output = outputs.get(parameter.layer)
    return parameter.layer not in moving and output is not None and not output.is_zero.all()


def _is_lone(parameter: Parameter) -> bool:
    """No layer's: the user made it."""
    return parameter.family in ("container", "other")


def _never_moved(still: list[Parameter], course: Course) -> Evidence:
    first, looks = still[0], len(course.steps)
    others = f", and so are those of {len(still) - 1} more" if len(still) > 1 else ""
    what = "it" if _is_lone(first) else f"what {first.layer} puts out"
    return Evidence(
        where=first.path,
        summary=f"the gradient of {first.path} is exactly zero at each of {looks} steps that were looked at{others}, and it ends "
        f"as it began: the loss is computed from {what}, but does not change with it",
        numbers={"parameters": len(still), "looks": looks},
        fix="Look at what stands between it and the loss: a weight of 0 (1 // 4 is 0), a clamp beyond whose bounds it lies, "
        "round, sign, a value without its graph; if it is not to learn, leave it out of the loss (in torch: or set "
        "requires_grad_(False)).",
        severity=Severity.HINT,
        confidence=Confidence.LIKELY,
        last_step=int(course.steps[-1]),
        strength=float(len(still)),
    )


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
