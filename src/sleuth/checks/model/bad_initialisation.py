"""The weights start where training cannot get away from, or far from the scale that their inputs ask for."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.location import Location
from sleuth.core.observation import Architecture, Role
from sleuth.core.reading.lines import weight_line
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import ParameterStart, StartFacts

# Half of a layer that computes one and the same thing is no accident of widening or of initialising in groups.
SYMMETRIC_SHARE = 0.5
# std·√fan_in is 0.6 in PyTorch's default, 1 for Xavier, 1.4 for He; 0.02 on 768 inputs gives 0.55. Plain randn on 64 gives 8.
TOO_LARGE = 4.0
TOO_SMALL = 0.03
# A scale is harmless as long as what comes out of the layer is of ordinary size.
LOUD = 4.0
FAINT = 0.05
# An averaging filter has positive weights that sum to one; rand() on 64 inputs sums to 32.
POSITIVE_SUM = 4.0
# The chance that so many symmetric weights are all positive is one in four thousand million.
POSITIVE_COUNT = 32
# In a layer of the user's own: 64 weights of rand() behind a ReLU make seven times the size that mixed signs make.
SAME_WAY = 3.0


@check(
    code="M212",
    stage=Stage.MODEL,
    severity=Severity.ERROR,
    reads=(ParameterStart, Architecture),
    explains=(
        "signal-grows-or-fades",
        "dead-units",
        "saturated-units",
        "collapsed-output",
        "input-ignored",
        "initial-loss-off",
        "vanishing-gradients",
        "exploding-gradients",
        "zero-gradients",
        "cannot-overfit-one-batch",
        "step-changes-nothing",
        "learns-without-input",
        "loss-not-decreasing",
        "loss-diverges",
        "loss-oscillates",
        "output-not-finite",
        "loss-not-finite",
        "learning-rate-too-high",
        "learning-rate-too-low",
        "train-eval-disagree",
        "weights-do-not-change",
        "update-too-small",
        "update-too-large",
        "predicts-one-class",
        "underfitting",
        "capacity-too-small",
    ),
    title="Weights start where training cannot leave from",
    why="""Units that start equal get equal gradients and stay equal, so a layer of hundreds acts as one unit; zeros behind a
    ReLU get no gradient at all. Weights far from the scale 1/√fan_in blow the signal up or let it die out.""",
    fix="""Remove the custom initialisation, or use nn.init.kaiming_normal_ (ReLU) or nn.init.xavier_uniform_ (tanh, sigmoid) for
    weights and zeros only for biases.""",
    decided_by="the spread of each weight matrix against its number of inputs, and rows that are equal",
    symptoms=(
        "weights initialised to zero",
        "loss stuck at 2.303",
        "all units learn the same",
        "loss does not change at all",
        "loss is huge at the start",
        "gradients are zero",
        "std of the weights too large",
    ),
)
def bad_initialisation(
    seen: Seen, *, too_large: float = TOO_LARGE, too_small: float = TOO_SMALL
) -> Iterator[Evidence | NotExamined]:
    facts = [f for f in seen.one(ParameterStart).parameters if f.family not in ("embedding", "norm", "batchnorm")]
    hidden = facts[:-1]  # equal units in the last layer are pulled apart by their targets
    yield from _symmetric(hidden, seen)
    weighty = [f for f in facts if f.family in ("linear", "conv", "other") and not f.trained and f.fan_in > 1]
    yield from _positive([f for f in weighty if f.family != "other" or _pulls_one_way(f, seen)], seen)
    judged = [f for f in weighty if f.family != "other" or f.in_proportion]
    # Of matrices of unknown use only those of unusual scale were tried: the others count among all.
    among = weighty if any(f.family == "other" for f in judged) else judged
    yield from _scale(judged, len(among), seen, too_large, too_small)
    unknown = [f for f in hidden if f.still_identical is None]
    if unknown:
        yield NotExamined(
            f"the units of {unknown[0].path} start equal, and without a backward pass it cannot be told if they stay so"
        )


def _symmetric(hidden: list[StartFacts], seen: Seen) -> Iterator[Evidence]:
    sick = [f for f in hidden if f.rows > 1 and (f.still_identical or 0) > SYMMETRIC_SHARE * f.rows]
    for f in sick:
        how = "all zero" if f.all_zero else "all the same number" if f.all_equal else "copies of each other"
        yield Evidence(
            where=f.path,
            location=weight_line(seen, f.path),
            summary=f"{f.still_identical} of the {f.rows} units of {f.path} start as {how} and are still equal after six steps, "
            "so the layer works as if it had one unit",
            numbers={"units": f.rows, "equal": f.still_identical, "mean": f.mean, "std": f.std, "layers": len(sick)},
            confidence=Confidence.CERTAIN,
            strength=(f.still_identical or 0) / f.rows + f.rows / 1e9,
        )


def _pulls_one_way(f: StartFacts, seen: Seen) -> bool:
    loud = any(t.path == _layer(f) and t.rms > LOUD for t in seen.first(Role.ACTIVATION))
    return loud and f.sign_gain is not None and f.sign_gain > SAME_WAY


def _positive(facts: list[StartFacts], seen: Seen) -> Iterator[Evidence]:
    for f in facts:
        count = int(np.prod(f.shape))
        if f.all_positive and not f.all_equal and count >= POSITIVE_COUNT and f.mean * f.fan_in > POSITIVE_SUM:
            yield Evidence(
                where=f.path,
                location=weight_line(seen, f.path),
                summary=f"all {count} weights of {f.path} are positive (mean {f.mean:.2g}, {f.fan_in} inputs a unit): "
                "every unit computes about the same large sum",
                numbers={"mean": f.mean, "std": f.std, "fan_in": f.fan_in},
                severity=Severity.WARNING,
                fix="Draw weights around zero, from a normal distribution and not between 0 and 1 (in torch: torch.randn or "
                "nn.init.kaiming_normal_ instead of torch.rand).",
                strength=f.mean * f.fan_in / POSITIVE_SUM,
            )


def _scale(facts: list[StartFacts], among: int, seen: Seen, too_large: float, too_small: float) -> Iterator[Evidence]:
    """Only where it is the rule in this model and shows in the activations: single odd layers are meant."""
    architecture = seen.one(Architecture)
    families = {layer.path: layer.family for layer in architecture.layers}
    order = [t.path for t in seen.first(Role.ACTIVATION)]
    after = dict(pairwise(order))
    outputs = {t.path: t.rms for t in seen.first(Role.ACTIVATION)}

    def normalised(f: StartFacts) -> bool:
        return families.get(after.get(_layer(f), ""), "") in ("norm", "batchnorm")

    seen_facts = [f for f in facts if _layer(f) in outputs]
    large = [f for f in seen_facts if f.gain > too_large and outputs[_layer(f)] > LOUD and not normalised(f)]
    if large and 2 * len(large) >= among:
        worst = max(large, key=lambda f: f.gain)
        yield _wrong_scale(worst, outputs, len(large), worst.gain / too_large, weight_line(seen, worst.path))
    hidden = [f for f in seen_facts[:-1] if not f.all_zero]
    small = [f for f in hidden if 0 < f.gain < too_small and outputs[_layer(f)] < FAINT]
    if small and 2 * len(small) >= len(hidden) + among - len(facts) and not architecture.has("norm", "batchnorm"):
        worst = min(small, key=lambda f: f.gain)
        yield _wrong_scale(worst, outputs, len(small), too_small / worst.gain, weight_line(seen, worst.path))


def _wrong_scale(f: StartFacts, outputs: dict[str, float], layers: int, strength: float, line: Location | None) -> Evidence:
    usual = (1 / f.fan_in) ** 0.5
    return Evidence(
        where=f.path,
        location=line,
        summary=f"{f.path} starts with std {f.std:.2g} where {f.fan_in} inputs ask for about {usual:.2g}; "
        f"its outputs have size {outputs[_layer(f)]:.2g}",
        numbers={"std": f.std, "usual": usual, "fan_in": f.fan_in, "output": outputs[_layer(f)], "layers": layers},
        severity=Severity.WARNING,
        strength=strength,
    )


def _layer(f: StartFacts) -> str:
    return f.path.rpartition(".")[0]
