"""The loss is high and flat, on the training data as well as on the validation data."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.observation import Evaluation, LossCall, Step
from sleuth.core.reading.curve import guessing, level, line, loss_curve, too_few, validation_curve
from sleuth.core.reading.wiring import classifies
from sleuth.core.stage import Confidence, Severity, Stage

LEAST_STEPS = 300
LEAST_VALIDATIONS = 4
# Of what guessing costs: texts, noisy labels and label smoothing leave two thirds at most.
HIGH = 0.7
# Of what guessing costs: a later half that gains less is flat.
FLAT = 0.03
# Two classes may be a toss-up by nature; several that are named one at a time rarely are.
LEAST_CLASSES = 3


@check(
    code="T426",
    stage=Stage.TRAINING,
    severity=Severity.WARNING,
    confidence=Confidence.POSSIBLE,
    reads=(Step, Evaluation, LossCall),
    title="The loss stays high on training and validation alike",
    why="""The model cannot express, or is kept from learning, what the data hold: it is too small, held down by weight
    decay or dropout, or its steps are too short. More data do not help.""",
    fix="""Make the model larger (wider layers, one more layer), remove weight decay and dropout, and try a higher learning
    rate, one at a time; if nothing moves the loss, look whether the inputs hold what is to be predicted.""",
    symptoms=(
        "underfitting",
        "both train and validation loss are high",
        "loss plateaus at a high value",
        "accuracy stays low on training data",
        "training accuracy does not go up",
    ),
    decided_by="both curves: their level against that of guessing, and their slope",
)
def underfitting(seen: Seen, *, high: float = HIGH, flat: float = FLAT) -> Iterator[Evidence | NotExamined]:
    steps, values = validation_curve(seen)
    if (reason := too_few(values, LEAST_VALIDATIONS)) is not None:
        yield NotExamined(reason)
        return
    curve = loss_curve(seen, LEAST_STEPS)
    if isinstance(curve, str):
        yield NotExamined(curve)
        return
    guess = guessing(seen) if _names_one_of_several(seen) else None
    if guess is None:
        yield NotExamined("how low this loss can get is not known")
        return
    half = curve.losses[len(curve) // 2 :]
    course, now, late = line(half), level(half[len(half) // 2 :]), values[len(values) // 2 :]
    if course.fall + 2 * course.error > flat * guess or late[0] - late[-1] > flat * guess:
        return
    if now.mean - 2 * now.error < high * guess or late.min() < high * guess:
        return
    yield Evidence(
        summary=f"for {len(half):,} steps the training loss stays at {now.mean:.3g} and validation at {late.mean():.3g}, where "
        f"guessing costs {guess:.3g}; unless that is all these inputs can tell, the model does not fit them",
        numbers={"training": now.mean, "validation": float(late.mean()), "guessing": guess, "start": float(curve.losses[0])},
        series=(
            Series("loss", tuple(curve.steps.astype(float).tolist()), tuple(curve.losses.tolist())),
            Series("validation loss", tuple(steps.astype(float).tolist()), tuple(values.tolist())),
        ),
        first_step=int(curve.steps[len(curve) // 2]),
        last_step=int(curve.steps[-1]),
        strength=now.mean / (high * guess),
    )


def _names_one_of_several(seen: Seen) -> bool:
    for call in seen.all(LossCall):
        output = call.argument("output")
        if not classifies(call) or output is None or output.facts.shape[1] < LEAST_CLASSES:
            return False
    return True
