"""The loss is the same whatever the targets are."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import Alignment, TargetPermutation

# The inputs tell this much about the targets (held-out R² of simple learners), and hardly by chance: they come in pairs.
SKILL = 0.05
CHANCE = 0.001


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
        "capacity-too-small",
    ),
    title="The loss does not depend on the targets",
    why="""A loss that stays the same when samples get each other's targets compares the outputs with something else. It may
    fall nicely, but what it teaches has nothing to do with the labels.""",
    fix="""Compare the outputs with the target in the loss: loss(output, target). Look for a variable that is overwritten, a
    mask that removes every target, or the model's own prediction in the target's place.""",
    decided_by="the loss with the targets of other samples",
    symptoms=(
        "loss does not depend on the labels",
        "loss goes to zero but accuracy is at chance",
        "wrong argument to the loss",
        "loss is the same with random labels",
    ),
)
def loss_ignores_target(seen: Seen, *, skill: float = SKILL) -> Iterator[Evidence | NotExamined]:
    trial = seen.one(TargetPermutation)
    others = trial.permuted + trial.replaced
    largest = max(abs(loss - trial.loss) for loss in others)
    if largest <= trial.rounding and not trial.gradients_differ:
        yield Evidence(
            summary=f"the loss is {trial.loss:.4g} with the batch's {trial.distinct_targets} different targets, and the same "
            f"with {len(others)} other assignments of them (largest difference {largest:.1g})",
            numbers={"loss": trial.loss, "largest_difference": largest, "assignments": len(others)},
        )
    elif trial.paired is False:
        yield _unpaired(trial, seen.maybe(Alignment), skill)


def _unpaired(trial: TargetPermutation, alignment: Alignment | None, skill: float) -> Evidence | NotExamined:
    """The targets count as a heap. A loss that compares distributions does that rightly, where inputs are mere noise."""
    if alignment is None or alignment.p_value > CHANCE or alignment.skill < skill:
        return NotExamined(
            "the loss compares all outputs of a batch with all its targets, which is right if samples and targets are no pairs"
        )
    return Evidence(
        summary=f"the loss stays {trial.loss:.4g} whichever sample gets which of the batch's {trial.distinct_targets} different "
        f"targets: only the targets as a whole count, though inputs and targets belong together (R² = {alignment.skill:.2f})",
        numbers={"loss": trial.loss, "assignments": len(trial.permuted), "skill": alignment.skill, "p_value": alignment.p_value},
        fix="Compare each output with its own target before averaging: ((output - target) ** 2).mean(). Do not sort, average or "
        "pool either side over the batch first.",
        confidence=Confidence.LIKELY,
    )
