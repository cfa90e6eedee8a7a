"""The loss compares every output with every target."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import LossCall
from sleuth.core.reading.lines import beside, output_line
from sleuth.core.stage import Confidence, Severity, Stage


@check(
    code="M204",
    stage=Stage.MODEL,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=(LossCall,),
    explains=(
        "cannot-overfit-one-batch", "loss-not-decreasing", "loss-oscillates", "initial-loss-off", "learns-without-input",
        "learning-rate-too-high", "learning-rate-too-low", "collapsed-output", "step-changes-nothing", "vanishing-gradients",
        "exploding-gradients", "underfitting", "loss-ignores-target",
        "capacity-too-small",
    ),
    title="The loss compares every output with every target",
    why="""Outputs of shape (N, 1) and targets of shape (N,) broadcast to N × N. The loss then asks each output to be near
    the targets of all samples, and the best the model can do is to answer their mean.""",
    fix="""Give both sides the same shape before the loss: output.squeeze(-1) or target.unsqueeze(-1).""",
    decided_by="the shapes at the loss, and the shape they become together",
    symptoms=(
        "Using a target size (N) that is different to the input size (N, 1)",
        "model predicts the mean for everything",
        "out of memory in the loss",
        "regression loss stuck at the variance",
        "forgot squeeze",
    ),
)  # fmt: skip
def loss_broadcasts(seen: Seen) -> Iterator[Evidence | NotExamined]:
    for call in seen.all(LossCall):
        output, target = call.argument("output"), call.argument("target")
        if call.broadcast is None or output is None or target is None:
            continue
        one, other = output.facts.shape, target.facts.shape
        place = call.broadcast_location or call.location
        shaped = output_line(_alike(seen, call), written=True) or place
        yield Evidence(
            location=shaped,
            summary=f"outputs of shape {one} against targets of shape {other} became {call.broadcast} in "
            f"{call.name}{beside(shaped, place)}",
            fix=_fix(one, other),
            numbers={"output": one, "target": other, "broadcast": call.broadcast},
        )


def _alike(seen: Seen, call: LossCall) -> list[LossCall]:
    """Calls of a loss of torch's from the same line; one written out stands where its shapes meet."""
    return [] if call.family == "other" else [c for c in seen.all(LossCall) if c.location == call.location]


def _fix(output: tuple[int, ...], target: tuple[int, ...]) -> str | None:
    if output == (*target, 1):
        return "Give both sides the same shape before the loss: output.squeeze(-1), or target.unsqueeze(-1)."
    if target == (*output, 1):
        return "Give both sides the same shape before the loss: target.squeeze(-1), or output.unsqueeze(-1)."
    return None
