"""Training on one batch alone until it is known by heart."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from sleuth.core.subject import Parts
from sleuth.probes.lab.probe import Lab

# Dropout and noise make the loss in training mode jump; what was learned shows in evaluation mode, seen this often.
EVALUATED_EVERY = 10
# A run that is this many times above its start will not come back.
LOST = 10.0
# A searching run that gained less than a tenth over this many steps goes on with a smaller rate.
PATIENCE = 50
GAINED = 0.1
SLOWER = 3.0


@dataclass(frozen=True)
class Run:
    losses: tuple[float, ...]
    complete: bool  # it took all its steps, reached its goal, or was lost; False: time ran out

    @property
    def final(self) -> float:
        return min(self.losses[-5:])


def memorise(
    lab: Lab,
    batch: Parts,
    steps: int,
    done: Callable[[list[float]], bool],
    stop: Callable[[], bool],
    *,
    rate: float | None = None,
) -> Run:
    """Up to `steps` steps, until the losses say that it is done or time says stop. With a `rate`, that one, made smaller
    where the loss stands still.

    Each loss is the lower one of training and, now and then, evaluation mode: batch normalisation lags behind in one,
    dropout disturbs the other.
    """
    if rate is not None:
        lab.bench.set_lr(rate)
    losses: list[float] = []
    for step in range(steps):
        if stop():
            return Run(tuple(losses), complete=False)
        lab.bench.set_training(True)
        loss = lab.bench.step(batch)
        if not math.isfinite(loss) or (losses and loss - losses[0] > LOST * max(abs(losses[0]), 1e-6)):
            break
        if step % EVALUATED_EVERY == EVALUATED_EVERY - 1:
            loss = min(loss, _settled(lab, batch, loss))
        losses.append(loss)
        if done(losses):
            break
        if rate is not None and step % PATIENCE == PATIENCE - 1 and _stands_still(losses):
            rate /= SLOWER
            lab.bench.set_lr(rate)
    return Run(tuple(losses), complete=True)


def _settled(lab: Lab, batch: Parts, otherwise: float) -> float:
    lab.bench.set_training(False)
    try:
        loss = lab.bench.loss(batch)
    except Exception:  # a step of the user's own may need training mode
        return otherwise
    return loss if math.isfinite(loss) else otherwise


def _stands_still(losses: list[float]) -> bool:
    before, since = losses[-2 * PATIENCE : -PATIENCE], losses[-PATIENCE:]
    return bool(before) and min(since) > min(before) - GAINED * abs(min(before))
