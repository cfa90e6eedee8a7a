"""The output does not depend on the input."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import Dependence

# Changes are measured in units of the outputs' own spread; below this only rounding is left.
NOTHING = 1e-9


@check(
    code="M221",
    stage=Stage.MODEL,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=(Dependence,),
    explains=(
        "disconnected-parameters",
        "collapsed-output",
        "learns-without-input",
        "cannot-overfit-one-batch",
        "loss-not-decreasing",
        "zero-gradients",
        "vanishing-gradients",
        "step-changes-nothing",
        "learning-rate-too-low",
        "learning-rate-too-high",
        "predicts-one-class",
        "underfitting",
        "initial-loss-off",
        "capacity-too-small",
    ),
    title="The output does not depend on the input",
    why="""With other inputs the model gives exactly the same outputs. Somewhere in forward the input is overwritten, replaced or
    multiplied away, so all it can learn is one answer for everything.""",
    fix="Follow the input through forward: the line that does not use it any more, or that overwrites it, is the one to mend.",
    decided_by="whether the outputs move when the inputs are exchanged",
    symptoms=(
        "the same output for every input",
        "predicts the same for everything",
        "output does not depend on the input",
        "predicts only one class",
        "model ignores the input",
    ),
)
def input_ignored(seen: Seen, *, nothing: float = NOTHING) -> Iterator[Evidence | NotExamined]:
    found = seen.one(Dependence)
    if found.whole_input <= nothing:
        yield Evidence(
            summary=f"the outputs for {found.samples} samples stay exactly the same when all inputs are exchanged",
            numbers={"samples": found.samples, "change": found.whole_input},
            strength=2.0,
        )
        return
    # Masks, lengths and weights may rightly make no difference; the input that the model is about may not.
    if found.main_input is not None and found.by_input.get(found.main_input, 1.0) <= nothing:
        used = [name for name, change in found.by_input.items() if change > nothing]
        yield Evidence(
            where=found.main_input,
            summary=f"the outputs stay exactly the same when {found.main_input}, the largest input, is exchanged; "
            f"they depend on {', '.join(used[:3])} only",
            numbers={"samples": found.samples, **{f"change by {k}": v for k, v in found.by_input.items()}},
            severity=Severity.WARNING,
            confidence=Confidence.LIKELY,
        )
