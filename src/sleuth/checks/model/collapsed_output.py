"""The same output for every sample."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import LossCall
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import OutputSpread

# Of what the answers have to tell apart. Fresh networks start at a hundredth of it or more, and leave that behind in a few steps.
TINY = 0.01
STILL_TINY = 0.003
# Scores that differ by one make one class e times as likely as another, whatever they are all raised by.
SCORES = ("cross-entropy", "nll", "bce-logits")
MEASURES = ("mse", "l1", "huber")


@check(
    code="M222",
    stage=Stage.MODEL,
    severity=Severity.WARNING,
    reads=(OutputSpread,),
    explains=(
        "cannot-overfit-one-batch", "learns-without-input", "loss-not-decreasing", "vanishing-gradients", "zero-gradients",
        "step-changes-nothing", "learning-rate-too-low", "learning-rate-too-high", "predicts-one-class", "underfitting",
        "capacity-too-small", "weights-do-not-change", "update-too-small", "train-eval-disagree", "samples-mix",
    ),
    title="The output is the same for every sample",
    why="""Inputs go in that differ, and the same answer comes out for all of them: what tells samples apart is averaged, squashed
    or scaled away inside. All such a model can learn is the mean answer.""",
    fix="""Print the spread over samples after each layer, h.std(0).mean(): the layer where it falls to nothing is the one to
    mend, such as a norm whose mean is taken again right after it, or an activation far outside its range.""",
    decided_by="the spread of the outputs over the samples",
    symptoms=(
        "predicts only one class",
        "the same output for every input",
        "all predictions are identical",
        "predicts the mean for everything",
        "embeddings collapse",
    ),
)  # fmt: skip
def collapsed_output(seen: Seen, *, tiny: float = TINY, still_tiny: float = STILL_TINY) -> Iterator[Evidence | NotExamined]:
    found = seen.one(OutputSpread)
    if not found.inputs_differ:
        yield NotExamined("all samples of the batch are the same")
        return
    if found.targets is not None and found.targets < 2:
        yield NotExamined("all samples that were read have the same target, so the same output is right")
        return
    scale = _scale(seen)
    if found.spread > tiny * (scale or found.size):
        return
    if found.trained_spread is None or found.trained_size is None:
        why = f": {found.why_untrained}" if found.why_untrained else ""
        yield NotExamined(f"the outputs start out nearly equal, and no steps could be taken to see if they stay so{why}")
        return
    if found.trained_spread <= still_tiny * (scale or found.trained_size):
        yield _evidence(found, scale or found.trained_size)


def _scale(seen: Seen) -> float | None:
    """What the outputs have to tell apart, where the loss says so; otherwise they are measured by their own size."""
    calls = [call for call in seen.all(LossCall) if not call.failed]
    if calls and all(call.family in SCORES for call in calls):
        return 1.0
    targets = [t for call in calls if call.family in MEASURES and (t := call.argument("target"))]
    if calls and len(targets) == len(calls):
        return max(t.facts.statistics.std for t in targets) or None
    return None


def _evidence(found: OutputSpread, scale: float) -> Evidence:
    return Evidence(
        summary=f"the outputs of {found.samples} samples differ by {found.spread:.1e} at the start and by "
        f"{found.trained_spread:.1e} after {found.steps} steps of descent, where answers lie about {scale:.2g} apart",
        numbers={
            "samples": found.samples,
            "spread": found.spread,
            "trained spread": found.trained_spread,
            "size": found.size,
            "scale": scale,
        },
        confidence=Confidence.LIKELY,
        strength=min(scale / max(found.trained_spread or 0.0, 1e-12), 1e6) ** 0.5,
    )
