"""The loss is the same whatever the targets are."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import TargetPermutation


@check(
    code="B304",
    stage=Stage.BATCH,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=(TargetPermutation,),
    explains=(
        "learns-without-input",
        "initial-loss-off",
        "collapsed-output",
        "predicts-one-class",
        "loss-not-decreasing",
        "cannot-overfit-one-batch",
    ),
    title="The loss does not depend on the targets",
    why="""A loss that stays the same when samples get each other's targets compares the outputs with something else. It may
    fall nicely, but what it teaches has nothing to do with the labels.""",
    fix="""Compare the outputs with the target in the loss: loss(output, target). Look for a variable that is overwritten, a
    mask that removes every target, or the model's own prediction in the target's place.""",
)
def loss_ignores_target(seen: Seen) -> Iterator[Evidence | NotExamined]:
    trial = seen.one(TargetPermutation)
    others = trial.permuted + trial.replaced
    largest = max(abs(loss - trial.loss) for loss in others)
    if largest > trial.rounding or trial.gradients_differ:
        return
    yield Evidence(
        summary=f"the loss is {trial.loss:.4g} with the batch's {trial.distinct_targets} different targets, and the same with "
        f"{len(others)} other assignments of them (largest difference {largest:.1g})",
        numbers={"loss": trial.loss, "largest_difference": largest, "assignments": len(others)},
    )
