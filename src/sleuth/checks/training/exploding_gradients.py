"""Gradients grow without bound: towards the first layers, or from step to step."""

import math
from collections.abc import Iterator
from statistics import median

import numpy as np

from sleuth.checks.evidence.progress import LEARNED, progress_of
from sleuth.checks.evidence.through_time import ratio, recurrent
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.history import Tensor
from sleuth.core.observation import Architecture, Role, Step
from sleuth.core.stage import Severity, Stage
from sleuth.core.trial import TimeReach

# First layers of healthy nets get up to some ten times the gradient of the last: convolutions add up over all positions.
DEEPER = 1e3
# Where one rate would have to suit layers that differ by this much, none does.
HOPELESS = 1e4
# Norms rise tenfold when a net leaves its first plateau; a thousandfold, and for good, is growth without bound.
GROWTH = 1e3
EARLY_STEPS = 5
LASTING_STEPS = 3
LEFT_OUT = ("embedding", "norm", "batchnorm")
LEAST_LAYERS = 3
# Layers of which a line through the sizes of their gradients can be drawn, and how well it must fit them (correlation).
MANY_LAYERS = 12
STEADY = 0.9


@check(
    code="T408",
    stage=Stage.TRAINING,
    severity=Severity.ERROR,
    reads=(Role.GRADIENT, Architecture),
    explains=(
        "initial-loss-off",
        "loss-not-decreasing",
        "loss-diverges",
        "loss-oscillates",
        "loss-spikes",
        "loss-not-finite",
        "gradient-not-finite",
        "cannot-overfit-one-batch",
        "learns-without-input",
        "update-too-large",
        "weights-grow",
        "underfitting",
        "predicts-one-class",
        "capacity-too-small",
    ),
    title="Gradients grow without bound",
    why="""Each layer, and each step of a recurrent net, scales the gradient that passes back through it. When most factors are
    above one, their product grows with depth: any rate that moves the last layers throws the first ones about.""",
    fix="""Add residual connections or use fewer layers, match the initialisation to the activation, and clip the gradients
    (in torch: torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0) before the step).""",
    decided_by="the gradient norm over the steps, and from layer to layer",
    symptoms=(
        "gradients explode",
        "loss goes down then nan",
        "gradient norm is huge",
        "loss is nan",
        "loss suddenly explodes",
        "rnn training is unstable",
    ),
)
def exploding_gradients(
    seen: Seen, *, deeper: float = DEEPER, hopeless: float = HOPELESS, growth: float = GROWTH
) -> Iterator[Evidence | NotExamined]:
    if (loud := _through_time(seen, deeper, hopeless)) is not None:
        yield loud
        return
    deep = _across_depth(seen)
    # Several optimisers, several gradients: a GAN's two players are not compared with each other.
    players = sorted({s.optimiser for s in seen.all(Step)})
    grown = next((found for player in players if (found := _over_steps(seen, player, growth)) is not None), None)
    if deep is None and (few := seen.count(Step)) < EARLY_STEPS + LASTING_STEPS:
        yield NotExamined(f"fewer than {LEAST_LAYERS} layers have a gradient, and {few or 'no'} steps were seen")
    if (deep is None or deep[0] <= deeper) and (steady := _layer_by_layer(seen)) is not None:
        deep = max(filter(None, (deep, steady)), key=lambda found: found[0])
    if deep is not None and deep[0] > deeper:
        ratio, first, last = deep
        yield Evidence(
            where=first.path,
            summary=f"the gradient of {first.path} is {ratio:.1e} times that of {last.path}, from the start",
            severity=Severity.ERROR if ratio > hopeless else Severity.WARNING,
            numbers={"first": first.rms, "last": last.rms, "ratio": ratio},
            series=(first.series, last.series),
            strength=ratio / deeper,
        )
    elif grown is not None:
        yield grown


def _through_time(seen: Seen, deeper: float, hopeless: float) -> Evidence | None:
    reach = seen.maybe(TimeReach)
    carrier = None if reach is None else recurrent(seen, reach)
    if reach is None or carrier is None or (grown := ratio(reach)) <= deeper:
        return None
    turn = grown ** (1 / max(reach.length - 1, 1))
    return Evidence(
        where=carrier.where,
        location=carrier.location,
        summary=f"at the start the answer depends on the first of {reach.length} positions {grown:.1e} times as much as on the "
        f"last, and so does the gradient: {carrier.where} makes it {turn:.2g} times as large at each turn",
        severity=Severity.ERROR if grown > hopeless else Severity.WARNING,
        numbers={"ratio": grown, "length": reach.length, "turn": turn},
        series=(Series("by position", tuple(map(float, reach.positions)), reach.sizes),),
        fix="Start the recurrent weight as an orthogonal matrix of gain 1 (in torch: nn.init.orthogonal_), use an LSTM or GRU, "
        "and clip the gradients to a norm of 1 before the step "
        "(in torch: torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)).",
        strength=grown / deeper,
    )


def _layers(seen: Seen) -> list[Tensor]:
    matrices = {p.path for p in seen.one(Architecture).parameters if len(p.shape) > 1 and p.family not in LEFT_OUT}
    return [g for g in seen.latest(Role.GRADIENT) if g.path in matrices and g.statistics.all_finite and g.rms > 0]


def _across_depth(seen: Seen) -> tuple[float, Tensor, Tensor] | None:
    """How much larger the first layers' gradient is than the last ones', at the start and still at the end."""
    layers = _layers(seen)
    if len(layers) < LEAST_LAYERS:
        return None
    quarter = max(1, len(layers) // 4)
    first, last = layers[:quarter], layers[-quarter:]
    ratios = [_typical(first, which) / max(g.rms_over_steps[which] for g in last) for which in (0, -1) if _moves(last, which)]
    return (min(ratios), first[0], max(last, key=lambda g: g.rms)) if ratios else None


def _layer_by_layer(seen: Seen) -> tuple[float, Tensor, Tensor] | None:
    """Many layers that each make the gradient a little larger: how much that comes to, from the last to the first. A training
    that learns all the same has an optimiser that takes the sizes out again."""
    layers = [g for g in _layers(seen) if min(g.rms_over_steps) > 0]
    progress = progress_of(seen.all(Step))
    if len(layers) < MANY_LAYERS or progress is None or progress.fell > LEARNED * abs(progress.start):
        return None
    depth = np.arange(len(layers))
    grown = []
    for which in (0, -1):
        sizes = np.log([g.rms_over_steps[which] for g in layers])
        slope = float(np.polyfit(depth, sizes, 1)[0])
        steady = float(np.corrcoef(depth, sizes)[0, 1]) < -STEADY
        grown.append(math.exp(-slope * (len(layers) - 1)) if steady else 1.0)
    return min(grown), layers[0], layers[-1]


def _typical(layers: list[Tensor], which: int) -> float:
    return median(g.rms_over_steps[which] for g in layers)


def _moves(layers: list[Tensor], which: int) -> bool:
    return max(g.rms_over_steps[which] for g in layers) > 0


def _over_steps(seen: Seen, optimiser: int, growth: float) -> Evidence | None:
    own = [s for s in seen.all(Step) if s.optimiser == optimiser]
    norms = [(s.step, s.gradient_norm) for s in own if s.gradient_norm is not None]
    if len(norms) < EARLY_STEPS + LASTING_STEPS:
        return None
    usual = max(n for _, n in norms[:EARLY_STEPS])
    since = next((i for i in range(len(norms)) if all(n > growth * usual for _, n in norms[i:])), None)
    if usual == 0 or since is None or len(norms) - since < LASTING_STEPS:
        return None
    step, latest = norms[since][0], norms[-1][1]
    return Evidence(
        summary=f"the norm of all gradients was {usual:.2g} in the first steps and is {latest:.2g} at step {norms[-1][0]}",
        numbers={"first": usual, "latest": latest, "growth": latest / usual},
        series=(Series("gradient norm", tuple(float(s) for s, _ in norms), tuple(n for _, n in norms)),),
        fix="Bound what is minimised (a hinge, a sigmoid, weight decay), and clip the gradients to a norm of 1 before the step "
        "(in torch: torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)).",
        first_step=step,
        last_step=norms[-1][0],
        strength=latest / usual / growth,
    )
