"""The batch size is far from the gradient's noise scale."""

import math
from collections.abc import Iterator

from sleuth.core.check import Evidence, Seen, check
from sleuth.core.stage import Severity, Stage
from sleuth.core.trial import GradientNoise, NoiseScale

# At a twentieth of the noise scale a step is nearly all noise. Nearer to it, batch sizes are a matter of memory and taste.
FAR_BELOW = 20.0
# Noisy steps throw the weights to where gradients are long and the scale is smaller: there, half as much will do.
STILL_BELOW = 10.0
# At thirty times the noise scale nearly all of the work of a step is wasted.
FAR_ABOVE = 30.0
# Batches from here on are in use for any kind of data, and momentum averages over several of them.
USUALLY_ENOUGH = 16
# Up to here a batch, also a whole small data set at once, costs too little to speak of.
USUALLY_FINE = 1024


@check(
    code="H503",
    stage=Stage.HYPERPARAMETERS,
    severity=Severity.HINT,
    reads=(GradientNoise,),
    explains=("loss-oscillates", "loss-spikes"),
    title="The batch size is far from the gradient's noise scale",
    why="""A batch's gradient is the true one plus noise that shrinks with the batch. Far below the noise scale, steps mostly
    undo each other; far above it, more samples no longer change the direction and only cost time.""",
    fix="Choose a batch size nearer to the noise scale.",
    symptoms=(
        "which batch size should I use",
        "loss is very noisy",
        "batch size too small",
        "batch size too large",
        "the loss jumps from step to step",
        "larger batches do not help",
        "cuda out of memory",
        "training is slow",
    ),
    decided_by="gradients of many batches at the same weights: how far they disagree against how long their mean is",
)
def batch_size_off(
    seen: Seen,
    *,
    far_below: float = FAR_BELOW,
    far_above: float = FAR_ABOVE,
    usually_enough: int = USUALLY_ENOUGH,
    usually_fine: int = USUALLY_FINE,
) -> Iterator[Evidence]:
    noise = seen.one(GradientNoise)
    size = noise.batch_size
    if len(noise.points) < 2:
        return
    start, later = noise.points[0], noise.points[-1]
    if size < usually_enough and start.low > far_below * size and later.low > STILL_BELOW * size:
        yield _evidence(noise, start, "below")
    elif size > usually_fine and all(p.high is not None and size > far_above * p.high for p in noise.points):
        yield _evidence(noise, max(noise.points, key=lambda p: p.high or 0.0), "above")


def _evidence(noise: GradientNoise, point: NoiseScale, side: str) -> Evidence:
    size, scale = noise.batch_size, point.scale
    upper = "any number" if point.high is None else f"{point.high:.0f}"
    middle = "" if scale is None else f" about {scale:.0f}"
    wanted = _power_of_two(scale or point.low)
    do = f"Raise the batch size towards {wanted}" if side == "below" else f"Lower the batch size towards {wanted}"
    more = ", or average the gradients of several batches before a step" if side == "below" else " and take more steps"
    times = point.low / size if side == "below" else size / (point.high or size)
    return Evidence(
        summary=f"the batch size is {size}, at least {times:.0f} times {side} the gradient's noise scale, which is{middle} "
        f"samples (between {point.low:.0f} and {upper}, from {noise.gradients} gradients {_when(point)})",
        fix=f"{do}{more}.",
        numbers={"batch_size": size, "noise_scale": scale, "low": point.low, "high": point.high, "step": point.step},
        strength=times / (FAR_BELOW if side == "below" else FAR_ABOVE),
    )


def _when(point: NoiseScale) -> str:
    return f"after {point.step} steps" if point.step else "at the start"


def _power_of_two(number: float) -> int:
    return int(2 ** max(0, round(math.log2(number))))
