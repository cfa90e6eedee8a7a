"""The same output for every sample."""

import math
from collections.abc import Iterator
from itertools import pairwise

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import LossCall, Role
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import OutputSpread

# Of what the answers have to tell apart. Fresh networks start at a hundredth of it or more, and leave that behind in a few steps.
TINY = 0.01
STILL_TINY = 0.001
# What vanishing-gradients calls faded; where no single place takes half of it away, counted in decades, it is the depth.
FADED = 1e-4
ABRUPT = 0.5
LEAST_LAYERS = 6
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
        "capacity-too-small", "weights-do-not-change", "update-too-small", "samples-mix",
        "units-dying",
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
    if found.collapsed is not None:
        # Compared with itself: nothing else says how far apart codes have to lie.
        if found.collapsed <= still_tiny * found.spread and found.collapsed <= still_tiny * found.size:
            yield _drawn_together(found)
        return
    if found.spread > tiny * _scale(seen, found.size):
        return
    if _fades_with_depth(seen):
        yield NotExamined("signal and gradient fade layer by layer: vanishing-gradients and signal-grows-or-fades look at that")
        return
    if found.trained_spread is None or found.trained_size is None:
        why = f": {found.why_untrained}" if found.why_untrained else ""
        yield NotExamined(f"the outputs start out nearly equal, and no steps could be taken to see if they stay so{why}")
        return
    scale = _scale(seen, found.trained_size)
    if found.trained_spread <= still_tiny * scale:
        yield _evidence(found, scale)


def _scale(seen: Seen, size: float) -> float:
    """What the outputs have to tell apart, where the loss says so; otherwise they are measured by their own size."""
    calls = [call for call in seen.all(LossCall) if not call.failed]
    if calls and all(call.family in SCORES for call in calls):
        return 1.0
    targets = [t for call in calls if call.family in MEASURES and (t := call.argument("target"))]
    if calls and len(targets) == len(calls):
        return min(size, max(t.facts.statistics.std for t in targets))
    return size


def _fades_with_depth(seen: Seen) -> bool:
    """Is the gradient lost on the way to the first layer, a part of it in each?"""
    # One layer, one number: the many matrices of a recurrent layer are no depth.
    layers: dict[str, float] = {}
    for gradient in seen.first(Role.GRADIENT):
        if gradient.rms > 0:
            layer = gradient.path.rpartition(".")[0] or gradient.path  # where parameters are keys, each stands for itself
            layers[layer] = max(layers.get(layer, 0.0), gradient.rms)
    sizes = list(layers.values())
    if len(sizes) < LEAST_LAYERS or sizes[0] > FADED * sizes[-1]:
        return False
    steps = [math.log(after / before) for before, after in pairwise(sizes)]
    return max(steps) < ABRUPT * math.log(sizes[-1] / sizes[0])


def _drawn_together(found: OutputSpread) -> Evidence:
    return Evidence(
        location=found.location,
        summary=f"the outputs of {found.samples} samples differed by {found.spread:.1e} when the training began and differ by "
        f"{found.collapsed:.1e} after {found.steps} steps: the loss draws answers together and nothing keeps them apart",
        fix="Add what keeps different samples apart: negatives (a contrastive loss), a term for the variance of the code, or a "
        "predictor with a stopped gradient on the other branch.",
        numbers={"samples": found.samples, "spread": found.spread, "collapsed": found.collapsed},
        strength=min(found.spread / max(found.collapsed or 0.0, 1e-12), 1e6) ** 0.5,
    )


def _evidence(found: OutputSpread, scale: float) -> Evidence:
    differ = f"differ by {found.spread:.1e} at the start and by {found.trained_spread:.1e} at most within {found.steps} steps"
    if not found.spread and not found.trained_spread:
        differ = f"are exactly the same, at the start and within {found.steps} steps"
    apart = f", where answers lie about {scale:.2g} apart" if scale else ""
    return Evidence(
        summary=f"the outputs of {found.samples} samples {differ} of descent{apart}",
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
