"""Dropout throws away more than it leaves, or falls on the output itself."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.location import Location
from sleuth.core.reading.flow import fed_by
from sleuth.core.reading.lines import layer_line
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import Flow, Operation

# Srivastava et al. 2014 keep at least half of the hidden units; beyond it most of what a layer computes is thrown away.
STRONG = 0.5
# What these do to a value they do to a zero as well.
KEEPING = ("reshape", "scale")


@check(
    code="M226",
    stage=Stage.MODEL,
    severity=Severity.WARNING,
    confidence=Confidence.CERTAIN,
    reads=(Flow,),
    explains=(
        "train-eval-disagree",
        "cannot-overfit-one-batch",
        "loss-not-decreasing",
        "underfitting",
        "validation-too-good",
        "learning-rate-too-low",
        "capacity-too-small",
    ),
    title="Dropout removes most of the signal",
    why="""Each training step sees only what dropout leaves. Above one half, the next layer gets mostly zeros and
    learns from noise; on the output, the answer itself is zeroed at random.""",
    fix="""Lower p to between 0.1 and 0.5, and take dropout off the last layer.""",
    decided_by="the share that each dropout removes, and where it stands",
    symptoms=(
        "training loss higher than validation loss",
        "validation better than training",
        "dropout 0.9",
        "dropout on the output",
        "training is noisy and slow",
    ),
)
def dropout_too_strong(seen: Seen, *, strong: float = STRONG) -> Iterator[Evidence | NotExamined]:
    flow = seen.one(Flow)
    ends = [fed_by(flow, index, KEEPING) for index in flow.outputs]
    on_output = ends and all(flow.operations[i].family == "dropout" for i in ends)
    found = {(o.layer, o.location): (index, o) for index, o in enumerate(flow.operations) if o.family == "dropout"}
    for index, operation in found.values():
        share = operation.settings.get("p")
        if not isinstance(share, int | float) or not share:
            continue
        if on_output and index in ends:
            yield _evidence(
                operation,
                operation.location,
                f"is the last thing done to the output: {share:.0%} of the answers are set to zero at random",
                share,
                1 + share,
                f"Remove the dropout {_name(operation)} after the last layer.",
            )
        # Inputs that are blotted out are the task of a denoising model, not its hidden layers.
        elif share > strong and flow.operations[fed_by(flow, operation.sources[0], KEEPING)].family != "input":
            made = layer_line(seen, operation.layer) or operation.location  # p stands where the layer is made
            yield _evidence(
                operation, made, f"leaves only {1 - share:.0%} of the units in each step", share, share / strong, None
            )


def _evidence(
    operation: Operation, place: Location | None, what: str, share: float, strength: float, fix: str | None
) -> Evidence:
    return Evidence(
        where=operation.layer or operation.name,
        location=place,
        summary=f"dropout {_name(operation)} with p={share:g} {what}",
        fix=fix,
        numbers={"p": share},
        strength=strength,
    )


def _name(operation: Operation) -> str:
    return operation.layer or "in forward"
