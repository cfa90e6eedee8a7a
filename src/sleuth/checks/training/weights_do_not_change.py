"""Parameters that get a gradient and stay as they are."""

from collections.abc import Iterator

import numpy as np

from sleuth.checks.evidence.loop import place_of
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Architecture, Call, CallKind, Role, Settings, Step
from sleuth.core.reading.course import Course, courses_of, matrices_of, together
from sleuth.core.stage import Confidence, Severity, Stage

# A rate of zero in the first steps of a warm-up or the last of a schedule is meant.
LEAST_LOOKS = 6
LEAST_STEPS = 20
# Values with a gradient among those that were compared: rows of a table that no sample asks for do not move either.
LEAST_VALUES = 16
# Of the weight, in the median: an update that large shows in its statistics, unless it is undone.
VISIBLE = 1e-4
# A weight of zeros has no size to compare with.
TINY = 1e-30

# What stands for an optimiser where the user's own code writes the weights.
BY_HAND = "ByHand"
IN_PLACE = (
    "Write into the parameter itself, under torch.no_grad(): p -= lr * p.grad (or p.sub_(...), p.copy_(...)). "
    "`p = p - ...` and `model.state_dict()[name] = ...` make a new tensor that the model never sees."
)

Parts = tuple[Course, Course, Course]  # gradient, update, weight


@check(
    code="T418",
    stage=Stage.TRAINING,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=(Role.UPDATE, Role.WEIGHT, Role.GRADIENT, Architecture, Step),
    explains=(
        "update-too-small",
        "loss-not-decreasing",
        "cannot-overfit-one-batch",
        "learns-without-input",
        "underfitting",
        "predicts-one-class",
    ),
    title="Weights get a gradient and stay as they are",
    why="""The optimiser holds these parameters and their gradient is not zero, yet after its steps they are the same to the last
    bit: their group's learning rate is zero, the change is too small for their dtype, or something puts the old values back.""",
    fix="""Give every parameter group a learning rate above zero, and look for code in the loop that loads or copies weights
    (load_state_dict, copy_, .data =) at every step.""",
    decided_by="the weights before and after each step that was looked at",
    symptoms=(
        "weights do not change",
        "parameters are identical after training",
        "optimizer.step() does nothing",
        "learning rate of a parameter group is zero",
        "loss does not change at all",
    ),
)
def weights_do_not_change(
    seen: Seen, *, least_looks: int = LEAST_LOOKS, least_steps: int = LEAST_STEPS
) -> Iterator[Evidence | NotExamined]:
    layers = [parts for parts in _layers(seen) if _is_long(parts[1], least_looks, least_steps)]
    if not layers:
        yield NotExamined(f"fewer than {least_looks} steps of a weight matrix with a gradient were looked at in full")
        return
    kept = [parts for parts in layers if parts[1].is_zero.all() and _stays(parts[2])]
    undone = [parts for parts in layers if _moves(parts) and _stays(parts[2])]
    rates = [s.lr for s in seen.all(Step)]
    scheduled = any(CallKind.SCHEDULER in s.calls for s in seen.all(Step))
    if kept and scheduled and (len(kept) < len(layers) or not any(rates)):
        yield NotExamined(f"{kept[0][1].path} does not change, but a schedule may hold its rate at zero for now")
    elif kept:
        yield _kept(seen, kept, len(layers), rates)
    elif undone:
        yield _undone(seen, undone, len(layers))


def _layers(seen: Seen) -> Iterator[Parts]:
    frames = [courses_of(seen.frames(role)) for role in (Role.GRADIENT, Role.UPDATE, Role.WEIGHT)]
    for path in matrices_of(seen.one(Architecture)):
        if all(path in courses for courses in frames):
            gradient, update, weight = together(*(courses[path] for courses in frames))
            felt = (1 - gradient.zero_share) * update.table[:, 0] >= LEAST_VALUES
            steps = gradient.steps[felt & gradient.finite]
            yield gradient.at(steps), update.at(steps), weight.at(steps)


def _is_long(course: Course, looks: int, steps: int) -> bool:
    return len(course.steps) >= looks and course.steps[-1] - course.steps[0] >= steps


def _stays(weight: Course) -> bool:
    return bool((weight.table == weight.table[0]).all())


def _moves(parts: Parts) -> bool:
    _, update, weight = parts
    return bool(np.median(update.rms / np.maximum(weight.rms, TINY)) > VISIBLE)


def _kept(seen: Seen, kept: list[Parts], count: int, rates: list[float | None]) -> Evidence:
    gradient, update, _ = kept[0]
    some = len(kept) < count
    who = f"{len(kept)} of {count} weight matrices" if some else f"all {count} weight matrices"
    zero = rates and all(rate == 0 for rate in rates)
    why = ", because the learning rate is 0" if zero else "" if rates[-1] is None else f", at a learning rate of {rates[-1]:.2g}"
    settings = seen.maybe(Settings)
    place = next((c.location for c in seen.all(Call) if c.kind == CallKind.STEP and c.location is not None), None)
    return Evidence(
        where=update.path,
        location=place,
        fix=IN_PLACE if settings is not None and settings.optimiser == BY_HAND else None,
        summary=f"{who} ({update.path}…) stay the same to the last bit over {len(update.steps)} steps that were looked at, "
        f"while their gradient is not zero ({np.median(gradient.rms):.1e}){why}",
        numbers={"layers": len(kept), "of": count, "looks": len(update.steps), "gradient": float(np.median(gradient.rms))},
        # A rate of zero is also how a part is frozen on purpose.
        severity=Severity.WARNING if some else None,
        first_step=int(update.steps[0]),
        last_step=int(update.steps[-1]),
        strength=len(kept) / count,
    )


def _undone(seen: Seen, undone: list[Parts], count: int) -> Evidence:
    _, update, weight = undone[0]
    ratio = float(np.median(update.rms / np.maximum(weight.rms, TINY)))
    return Evidence(
        where=update.path,
        location=place_of(seen, CallKind.RETURNS_WEIGHTS),
        summary=f"each step changes {update.path} by {ratio:.1e} of its size, and before the next one it is back where it was: "
        f"at {len(weight.steps)} steps that were looked at, {len(undone)} of {count} weight matrices began with the same values",
        numbers={"layers": len(undone), "of": count, "looks": len(weight.steps), "ratio": ratio},
        fix="Remove what writes the old weights back between the steps, a loading or copying of weights inside the loop "
        "(in torch: load_state_dict, copy_, deepcopy). "
        "Where a step returns the new weights, assign them and give them to the next one.",
        first_step=int(update.steps[0]),
        last_step=int(update.steps[-1]),
        strength=len(undone) / count,
    )
