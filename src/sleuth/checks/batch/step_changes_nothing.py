"""An optimiser step leaves all weights as they were."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Settings
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import StepEffect


@check(
    code="B302",
    stage=Stage.BATCH,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=(StepEffect, Settings),
    explains=(
        "weights-do-not-change",
        "update-too-small",
        "cannot-overfit-one-batch",
        "learns-without-input",
        "loss-not-decreasing",
        "underfitting",
        "capacity-too-small",
    ),
    title="An optimiser step changes no weight",
    why="""Training is nothing but steps that change the weights. When a step leaves every one of them equal to the last bit,
    the loss stays what it was, however long it runs.""",
    fix="""Give the optimiser the parameters of this very model (model.parameters()) and a rate above zero; in an optimiser of
    your own, write into the parameter in place, as p.data.add_(...) does; p = p - ... only makes a new array.""",
    decided_by="the weights before and after one step, bit by bit",
    symptoms=(
        "weights do not change",
        "optimizer.step() does nothing",
        "parameters are not updated",
        "loss is exactly the same at every step",
    ),
)
def step_changes_nothing(seen: Seen) -> Iterator[Evidence | NotExamined]:
    effect, settings = seen.one(StepEffect), seen.one(Settings)
    if len(effect.unchanged) < effect.parameters:
        return
    all_zero = len(effect.gradients_zero) == effect.parameters
    if all_zero and effect.loss_before == 0:
        yield NotExamined("the loss is zero from the start: there is nothing to change")
        return
    name = settings.optimiser or "optimiser"
    yield Evidence(
        summary=f"after a step of {name} all {effect.parameters} parameters equal what they were to the last bit: "
        + _reason(effect, settings, all_zero),
        numbers={"parameters": effect.parameters, "zero_gradients": len(effect.gradients_zero), "lr": settings.lr},
        first_step=1,
    )


def _reason(effect: StepEffect, settings: Settings, all_zero: bool) -> str:
    if all_zero:
        return "every gradient is zero"
    if settings.lr == 0:
        return "the learning rate is 0"
    with_gradient = effect.parameters - len(effect.gradients_zero)
    rate = "" if settings.lr is None else f" and the learning rate is {settings.lr:g}"
    return f"{with_gradient} of them have a gradient{rate}, but nothing was written"
