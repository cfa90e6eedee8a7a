"""The same input stands there under different labels."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import Repeats

# No model can be right about both; below one in a hundred this is lost in the ordinary errors of labelling.
SHARE = 0.01
# Where so many samples meet an equal by nature, different outcomes for equal inputs are the task itself.
NATURAL = 0.05
FEWEST = 4


@check(
    code="D109",
    stage=Stage.DATA,
    severity=Severity.WARNING,
    confidence=Confidence.CERTAIN,
    reads=(Repeats,),
    explains=("cannot-overfit-one-batch", "underfitting", "loss-not-decreasing", "capacity-too-small"),
    title="The same input has different labels",
    why="""For equal inputs a model gives equal answers, so of two different labels one is always wrong: the loss cannot reach
    zero, and the gradients of the two pull against each other.""",
    fix="""Look at the pair named here. Keep one label for each input, drop the pair, or give the model the feature by which the
    two differ.""",
    decided_by="the labels of samples whose inputs are equal",
    symptoms=(
        "the same input with different labels",
        "contradictory or noisy labels",
        "training accuracy does not reach 100 %",
        "loss does not reach zero",
    ),
)
def conflicting_labels(seen: Seen, *, share: float = SHARE) -> Iterator[Evidence | NotExamined]:
    trial = seen.one(Repeats)
    if not trial.labelled:
        yield NotExamined("the target is not one class a sample")
        return
    if trial.coincidence > NATURAL:
        yield NotExamined("equal inputs are natural here, so they may have different outcomes")
        return
    if trial.conflict is None or trial.conflicting < FEWEST or trial.conflicting / trial.samples < share:
        if not trial.complete:
            yield NotExamined(f"only a part of the data was read: {trial.samples} samples hold no suspicious equals")
        return
    one, label, other, another = trial.conflict
    yield Evidence(
        where="train",
        summary=f"{trial.conflicting} of {trial.samples} training samples have an equal under another label: sample {one} is "
        f"{label}, sample {other} with the same input is {another}",
        numbers={"conflicting": trial.conflicting, "samples": trial.samples},
        strength=trial.conflicting / trial.samples / share,
    )
