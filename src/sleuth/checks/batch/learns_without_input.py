"""Blanked inputs reach the same loss."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.stage import Severity, Stage
from sleuth.core.trial import Ablation, SameTargets

# Of what one and the same answer for all samples leaves: to get below without inputs, the answer must come from elsewhere.
BELOW_CONSTANT = 0.5
# Of the same: inputs that gain less are of no use to the model.
GAIN = 0.05
# Of the start: below this the samples' targets are too alike for the inputs to matter.
WORTH_KNOWING = 0.05
# Standard errors: what inputs add beyond so many, and beyond GAIN of what was learned, is no chance.
SURE = 2.0
# Of the start: a training that got rid of less has not learned its one answer yet.
LEARNED = 0.5
# Simple learners find in the inputs what differs between targets, with this probability of an error.
LINKED = 0.01


@check(
    code="B303",
    stage=Stage.BATCH,
    severity=Severity.WARNING,
    reads=((Ablation, SameTargets),),
    explains=("overfitting", "underfitting", "loss-not-decreasing", "validation-too-good", "capacity-too-small"),
    title="Blanked inputs reach the same loss",
    why="""With the input of one sample in place of all others, a model can only give all of them the same answer. When it
    reaches the same loss as with the real inputs, what it learns does not come from them.""",
    fix="""Look for what else tells samples apart: a parameter with an axis of the batch's size, the target among the inputs, a
    counter or cache in the model; and whether the input really reaches the first layer.""",
    decided_by="the loss reached on one batch with real and with blanked inputs",
    symptoms=(
        "model only learns the label frequencies",
        "predicts the same for everything",
        "no better than guessing the most frequent class",
        "loss is the same with random inputs",
    ),
)
def learns_without_input(
    seen: Seen, *, below_constant: float = BELOW_CONSTANT, gain: float = GAIN
) -> Iterator[Evidence | NotExamined]:
    same, trial = seen.maybe(SameTargets), seen.maybe(Ablation)
    if same is not None:
        yield from _judge_same(same, gain)
        return
    if trial is None:
        return
    real, blank, start = min(trial.losses[-5:]), min(trial.blank_losses[-5:]), trial.losses[0]
    floor = trial.floor or 0.0
    if trial.constant_floor is None:
        if blank - real < gain * abs(start):
            yield NotExamined("what one answer for all samples would reach is not known for this loss")
        return
    room = trial.constant_floor - floor
    if room < WORTH_KNOWING * abs(start - floor):
        yield NotExamined("one answer for all samples of the batch is almost right")
    elif blank - floor < below_constant * room:
        yield _evidence(trial, real, blank, "less than any one answer for all could reach")
    elif blank - real >= gain * room:
        return
    elif trial.stalled and real - floor >= (1 - gain) * room:
        yield _evidence(trial, real, blank, "what one and the same answer for all reaches")
    else:
        yield NotExamined(f"it learned too little to tell: {real:.3g} with inputs, {blank:.3g} without")


def _evidence(trial: Ablation, real: float, blank: float, meaning: str) -> Evidence:
    curves = {"with inputs": trial.losses, "without": trial.blank_losses}
    return Evidence(
        summary=f"trained on one batch the loss gets to {real:.3g}, and to {blank:.3g} when every sample gets the first one's "
        f"input: {meaning} ({trial.constant_floor:.3g})",
        numbers={"loss": real, "blank": blank, "constant": trial.constant_floor},
        series=tuple(Series(name, tuple(float(i + 1) for i in range(len(y))), y) for name, y in curves.items()),
        first_step=1,
    )


def _judge_same(same: SameTargets, gain: float) -> Iterator[Evidence | NotExamined]:
    learned = same.start - min(same.with_inputs, same.without_inputs)
    if same.link_p_value is not None and same.link_p_value <= LINKED:
        return
    if learned < LEARNED * abs(same.start):
        yield NotExamined(f"it learned too little to tell: {same.with_inputs:.3g} with inputs, {same.without_inputs:.3g} without")
    elif same.without_inputs - same.with_inputs > max(gain * learned, SURE * same.error):
        return
    else:
        yield Evidence(
            summary=f"{_alike(same)}: after {same.steps} steps the loss of held-out samples is {same.without_inputs:.3g} when "
            f"all inputs are blank, and {same.with_inputs:.3g} with the real ones (start {same.start:.3g})",
            where="target",
            numbers={"with": same.with_inputs, "without": same.without_inputs, "start": same.start, "unlike": same.unlike},
            fix="Look at how targets are read: each sample must get its own (the file name, the index, a variable that a loop "
            "overwrites). Print the targets of ten samples.",
            first_step=1,
            strength=2.0,
        )


def _alike(same: SameTargets) -> str:
    form = f" of {same.numbers} numbers" if same.numbers > 1 else ""
    if same.unlike == 0:
        return f"all {same.samples} samples have one and the same target{form}"
    return (
        f"{same.samples} samples have the same target{form} but for {same.unlike:.2g} of its variance, which inputs do not tell"
    )
