"""The shape of the output does not fit the target for this loss."""

from collections.abc import Iterator
from math import prod

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Failure, LossCall
from sleuth.core.stage import Confidence, Severity, Stage

# Losses that compare element by element and stretch the smaller side in silence.
STRETCHING = ("mse", "l1", "huber", "kl")


@check(
    code="M203",
    stage=Stage.MODEL,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=((Failure, LossCall),),
    explains=(
        "forward-fails", "initial-loss-off", "cannot-overfit-one-batch", "loss-not-decreasing",
        "collapsed-output",
        "capacity-too-small",
    ),
    title="The output's shape does not fit the target's",
    why="""A loss compares each output with its own target. When the shapes do not match it either refuses, or stretches one side
    so that outputs are compared with targets that are not theirs.""",
    fix="""Give the last layer as many units as the target has values (or classes), and give the target the shape the loss
    asks for: class indices of shape (N,) for cross-entropy, the output's own shape for the others.""",
    decided_by="the shapes of output and target at the loss",
    symptoms=(
        "Using a target size that is different to the input size",
        "Expected target size",
        "The size of tensor a must match the size of tensor b",
        "shape of the output does not match the target",
        "0D or 1D target tensor expected, multi-target not supported",
        "input and target batch or spatial sizes don't match",
    ),
)  # fmt: skip
def output_target_mismatch(seen: Seen) -> Iterator[Evidence | NotExamined]:
    failures = [f for f in seen.all(Failure) if f.phase == "loss" and f.kind == "shape"]
    if not failures and not seen.all(LossCall):
        yield NotExamined("no call of a loss was seen")
    for failure in failures:
        yield Evidence(
            location=failure.location,
            summary=_refused(failure),
            fix=failure.advice[0].upper() + failure.advice[1:] + "." if failure.advice else None,
            numbers={"expected": failure.expected, "got": failure.got},
        )
    for call in seen.all(LossCall):
        yield from _stretched(call)


def _refused(failure: Failure) -> str:
    said = failure.message.strip().splitlines()[0]
    if failure.got and failure.expected:
        return f"the loss takes {failure.expected} and gets {failure.got}. {failure.error}: {said}"
    return f"the loss refuses these shapes. {failure.error}: {said}"


def _stretched(call: LossCall) -> Iterator[Evidence]:
    output, target = call.argument("output"), call.argument("target")
    if call.family not in STRETCHING or call.broadcast or call.failed or output is None or target is None:
        return
    one, other = output.facts.shape, target.facts.shape
    sizes = prod(one), prod(other)
    # A single number on one side is meant for all of the other: the labels of a least-squares GAN.
    if one == other or sizes[0] == sizes[1] or 1 in sizes:
        return
    yield Evidence(
        location=call.location,
        summary=f"{call.name} compares outputs of shape {one} with targets of shape {other}: the smaller side is repeated",
        numbers={"output": one, "target": other},
        confidence=Confidence.LIKELY,
    )
