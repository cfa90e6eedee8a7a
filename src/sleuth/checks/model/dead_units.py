"""Units that are zero for every sample."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Role, Units
from sleuth.core.reading.lines import feeding_line
from sleuth.core.stage import Severity, Stage

# Where these say zero their slope is zero as well. GELU, SiLU and hard swish are zero at zero too, but not flat there.
RECTIFIERS = ("relu", "relu6", "hardshrink", "softshrink", "threshold")
SHRINKERS = ("hardshrink", "softshrink", "threshold")
SHRUNK = "Lower the threshold of the activation (lambd, or threshold) below the size that its inputs really have."
DEAD_SHARE = 0.5
# Over this many samples a unit that fires for one in twenty stays silent with a probability of 4 %.
LEAST_SAMPLES = 64
# Where samples hardly differ each unit is on or off for all of them, like a coin; so many standard deviations
# above half is no coin.
COIN = 4.0
# Fewer units may all be off by such chance.
LEAST_UNITS = 8
# One activation object called more often than this is a loop over time, whose first turn may well be silent.
MOST_CALLS = 4


@check(
    code="M214",
    stage=Stage.MODEL,
    severity=Severity.WARNING,
    reads=((Units, Role.ACTIVATION),),
    explains=(
        "input-ignored",
        "collapsed-output",
        "vanishing-gradients",
        "zero-gradients",
        "cannot-overfit-one-batch",
        "step-changes-nothing",
        "learns-without-input",
        "loss-not-decreasing",
        "learning-rate-too-low",
        "learning-rate-too-high",
        "weights-do-not-change",
        "update-too-small",
        "units-dying",
        "predicts-one-class",
        "underfitting",
        "capacity-too-small",
    ),
    title="Most units of a layer are zero for every sample",
    why="""A ReLU that is off for every sample passes neither signal nor gradient, so nothing can bring it back. Large negative
    biases, a step that was too large or inputs far from zero push units there; so does a threshold above all that arrives.""",
    fix="""Start biases at zero and weights with nn.init.kaiming_normal_, lower the learning rate, or use LeakyReLU or GELU, which
    never switch off entirely.""",
    decided_by="how many units are zero for every sample",
    symptoms=(
        "dead relu",
        "activations are all zero",
        "most neurons never fire",
        "gradients are zero",
        "loss stuck",
        "predicts the same for everything",
    ),
)
def dead_units(
    seen: Seen, *, dead_share: float = DEAD_SHARE, least_samples: int = LEAST_SAMPLES
) -> Iterator[Evidence | NotExamined]:
    layers = [units for units in _merged(seen.all(Units)) if units.activation in RECTIFIERS]
    if not layers:
        yield NotExamined("no ReLU or other activation that switches units off was seen at work")
        return
    few = [u for u in layers if u.samples < least_samples]
    if len(few) == len(layers):
        yield NotExamined(f"only {few[0].samples} samples were seen; telling a dead unit from a rare one takes {least_samples}")
        return
    for units in layers:
        count = len(units.nonzero)
        dead = int(np.count_nonzero(_is_off(units)))
        limit = dead_share + COIN * 0.5 / count**0.5
        whole = dead == count and count >= LEAST_UNITS
        if units.samples >= least_samples and (whole or dead > limit * count):
            word = "All" if whole else f"{dead} of the"
            yield Evidence(
                where=units.path,
                location=feeding_line(seen, units.path),
                summary=f"{word} {count} units of {units.path} are {_value(units)} for each of {units.samples} samples",
                numbers={"dead": dead, "units": count, "samples": units.samples},
                fix=SHRUNK if units.activation in SHRINKERS else None,
                strength=dead / count / dead_share + (1.0 if whole else 0.0),
            )


def _is_off(units: Units) -> np.ndarray:
    """nn.Threshold puts any number in the place of what is too small, not zero alone."""
    return np.asarray(units.min == units.max if units.activation == "threshold" else units.nonzero == 0)


def _value(units: Units) -> str:
    values = units.max[_is_off(units)]
    return "zero" if not values.any() else f"{values[0]:.3g}"


def _merged(observed: list[Units]) -> list[Units]:
    """Batches joined. A layer that is called several times in one step is several layers, unless it is a loop."""
    calls: dict[tuple[str, int], int] = defaultdict(int)
    groups: dict[tuple[str, int, int], list[Units]] = defaultdict(list)
    most: dict[str, int] = defaultdict(int)
    for units in observed:
        turn = calls[units.path, units.step]
        calls[units.path, units.step] += 1
        most[units.path] = max(most[units.path], turn + 1)
        groups[units.path, len(units.nonzero), turn].append(units)
    joined: dict[tuple[str, int, int], list[Units]] = defaultdict(list)
    for (path, width, turn), members in groups.items():
        joined[path, width, 0 if most[path] > MOST_CALLS else turn] += members
    return [_sum(members) for members in joined.values()]


def _sum(members: list[Units]) -> Units:
    samples = {m.step: m.samples for m in members}
    return Units(
        step=members[0].step,
        path=members[0].path,
        family=members[0].family,
        activation=members[0].activation,
        samples=sum(samples.values()),
        nonzero=np.sum([m.nonzero for m in members], axis=0),
        min=np.min([m.min for m in members], axis=0),
        max=np.max([m.max for m in members], axis=0),
    )
