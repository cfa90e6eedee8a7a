"""The only place that builds a `Step`. Steps count from 0, in every framework."""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from sleuth.core.observation import NotFinite, Step
from sleuth.core.statistics import norm_of

NOTHING: Mapping[str, float] = {}
NO_COUNTS: Mapping[str, int] = {}


def build_step(
    step: int,
    loss: float | None,
    *,
    lr: float | None = None,
    gradients: np.ndarray | None = None,
    calls: Sequence[str] = (),
    counts: Mapping[str, int] = NO_COUNTS,
    optimiser: int = 0,
    training: bool = True,
    seconds: float = 0.0,
    phases: Mapping[str, float] = NOTHING,
    unusual: bool = False,
) -> Step:
    """`loss`: as it came, NaN and Inf included; None: this step had none of its own. `gradients`: the table of those that the
    step used, where it was looked at."""
    return Step(
        step,
        loss if loss is not None and math.isfinite(loss) else None,
        lr,
        gradient_norm=None if gradients is None else norm_of(gradients),
        calls=tuple(calls),
        counts=counts,
        optimiser=optimiser,
        training=training,
        seconds={"step": seconds, **phases},
        unusual=unusual,
        heard=loss is not None,
    )


def mean_loss(losses: Iterable[float]) -> float | None:
    """Of a step that several backwards fed; None: nobody heard one."""
    values = list(losses)
    return sum(values) / len(values) if values else None


def not_finite_loss(step: int, loss: float | None) -> NotFinite | None:
    """What is to be said of it, where it is NaN or Inf."""
    if loss is None or math.isfinite(loss):
        return None
    return NotFinite(step, "loss", nans=int(math.isnan(loss)), infs=int(math.isinf(loss)))
