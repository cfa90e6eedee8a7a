"""Gradients fade on their way to the first layers."""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from math import exp, log
from statistics import median

from sleuth.checks.evidence.progress import progress_of
from sleuth.checks.evidence.through_time import ratio, recurrent
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.history import Tensor
from sleuth.core.location import Location
from sleuth.core.observation import Architecture, Call, Role, Step
from sleuth.core.stage import Severity, Stage
from sleuth.core.trial import TimeReach

# Under plain SGD a layer this far below the last one moves ten thousand times slower; rescaling optimisers
# such as Adam hide that at first, but the signal that reaches the layer is as faint.
FADED = 1e-4
# Rows of an embedding that no sample asks for have no gradient; scales of norms live on a scale of their own. Yet what arrives at
# one of them has passed every layer that comes after it: small gradients there have another reason (the queries and keys of an
# attention that still looks everywhere alike).
LEFT_OUT = ("embedding", "norm", "batchnorm")
LEAST_LAYERS = 3
# Of a training that goes on: a last layer that starts near zero has not moved before.
LEAST_STEPS = 20
# A chain of so many layers shows by itself whether it fades: of any two, the later one has the larger gradient.
LEAST_CHAIN = 6
STEADILY = 0.9
# Their slope is a quarter at most, or falls to nothing away from zero: in a row they are what fades the gradient.
SATURATING = ("sigmoid", "tanh", "softsign", "hardsigmoid", "hardtanh")

# Held-out R² of simple learners: so much is plain to see, so little is nothing.
TOLD = 0.2
UNTOLD = 0.05


@check(
    code="T407",
    stage=Stage.TRAINING,
    severity=Severity.WARNING,
    reads=(Role.GRADIENT, Architecture),
    explains=(
        "loss-not-decreasing",
        "update-too-small",
        "cannot-overfit-one-batch",
        "learns-without-input",
        "learning-rate-too-low",
        "underfitting",
        "predicts-one-class",
        "capacity-too-small",
    ),
    title="Gradients fade on their way to the first layers",
    why="""Each layer scales the gradient that passes back through it. When most factors are below one,
    their product shrinks with depth: the last layers train, the first stay where they started.""",
    fix="""Match the initialisation to the activation, add normalisation or residual connections,
    or replace a saturating activation such as sigmoid by ReLU.""",
    decided_by="the gradient of the first layers against that of the last",
    symptoms=(
        "gradients are zero",
        "gradients vanish",
        "gradients are tiny in the first layers",
        "first layers do not learn",
        "deep network does not train",
    ),
)
def vanishing_gradients(seen: Seen, *, faded: float = FADED) -> Iterator[Evidence | NotExamined]:
    if (lost := _out_of_reach(seen, faded)) is not None:
        yield lost
        return
    parameters = seen.one(Architecture).parameters
    matrices = {p.path for p in parameters if len(p.shape) > 1 and p.family not in LEFT_OUT}
    # An exactly zero gradient is a cut graph: that is zero-gradients' business.
    alive = [g for g in seen.latest(Role.GRADIENT) if g.statistics.all_finite and g.rms > 0]
    layers = [g for g in alive if g.path in matrices]
    if len(layers) < LEAST_LAYERS:
        yield NotExamined(f"fewer than {LEAST_LAYERS} layers have a gradient")
        return
    if seen.all(Call) and layers[-1].steps[-1] - layers[-1].steps[0] < LEAST_STEPS:
        yield NotExamined(f"only {layers[-1].steps[-1] - layers[-1].steps[0] + 1} steps were seen")
        return
    quarter = max(1, len(layers) // 4)
    left_out = {p.path for p in parameters if p.family in LEFT_OUT}
    passed = [g for g in alive[: alive.index(layers[0])] if g.path in left_out]
    first = max([*layers[:quarter], *passed], key=lambda g: g.rms)
    last = layers[-quarter:]
    # A last layer that starts at zero holds the gradient back only until it has moved: it must stay faded.
    ratio = max(_ratio(first, last, 0), _ratio(first, last, -1))
    how = ""
    if ratio >= faded:
        ratio = max(*(_along_the_chain(layers, which) for which in (0, -1)), *(_ratio(g, last, -1) for g in passed))
        first, how = layers[0], ", and it shrinks from layer to layer"
    if ratio < faded:
        yield Evidence(
            where=layers[0].path,
            location=_saturating_line(seen),
            summary=f"the gradient of {first.path} is {ratio:.1e} of that of {last[-1].path}{how}",
            numbers={"first": first.rms, "last": last[-1].rms, "ratio": ratio, "layers": len(layers)},
            series=(first.series, last[-1].series),
            strength=faded / max(ratio, 1e-30),
        )


def _saturating_line(seen: Seen) -> Location | None:
    """Where most of the activations are made that hold the gradient back; None: there are no such."""
    layers = [layer for layer in seen.one(Architecture).layers if layer.settings.get("activation") in SATURATING]
    lines = Counter(layer.location for layer in layers if layer.location is not None)
    return lines.most_common(1)[0][0] if len(layers) >= LEAST_LAYERS and lines else None


def _out_of_reach(seen: Seen, faded: float) -> Evidence | None:
    """The beginning of a sequence, where it decides and the training gets nowhere. That a recurrence forgets is no harm by
    itself: most do at the start, and where the end of the sequence decides it does not matter."""
    reach, progress = seen.maybe(TimeReach), progress_of(seen.all(Step))
    if reach is None or progress is None or progress.works or reach.beyond is None or reach.within is None:
        return None
    rest, carrier = ratio(reach), recurrent(seen, reach)
    if rest >= faded or carrier is None or reach.beyond < TOLD or reach.within > UNTOLD:
        return None
    return Evidence(
        where=carrier.where,
        location=carrier.location,
        summary=f"at the start the answer depends on the first of {reach.length} positions {rest:.1e} times as much as on the "
        f"last, and so does the gradient; yet a simple learner tells the targets from the positions that are out of reach "
        f"(R² = {reach.beyond:.2f}), and from the others not (R² = {max(reach.within, 0.0):.2f})",
        numbers={"ratio": rest, "length": reach.length, "beyond": reach.beyond, "within": reach.within},
        series=(Series("by position", tuple(map(float, reach.positions)), reach.sizes),),
        fix="Use an LSTM or GRU, start the recurrent weight as an orthogonal matrix of gain 1 (in torch: nn.init.orthogonal_), "
        "or let the answer look at all positions (attention, a mean over time).",
        strength=faded / max(rest, 1e-30),
    )


def _ratio(first: Tensor, last: list[Tensor], which: int) -> float:
    """Of the first layers' gradient to a typical one of the last, at the first or the latest step."""
    typical = median(g.rms_over_steps[which] for g in last)
    return first.rms_over_steps[which] / typical if typical > 0 else 1.0


def _along_the_chain(layers: list[Tensor], which: int) -> float:
    """The first to the last, by the factor that is usual from a layer to the next; 1 where they do not fade layer by layer."""
    sizes = [g.rms_over_steps[which] for g in layers]
    if len(layers) < LEAST_CHAIN or min(sizes) <= 0:
        return 1.0
    pairs = list(combinations(range(len(sizes)), 2))
    slopes = [(log(sizes[later]) - log(sizes[earlier])) / (later - earlier) for earlier, later in pairs]
    if sum(slope > 0 for slope in slopes) < STEADILY * len(pairs):
        return 1.0
    return exp(-median(slopes) * (len(sizes) - 1))
