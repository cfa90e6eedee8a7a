"""Memorising a batch whose inputs tell nothing about the sample."""

from collections.abc import Callable
from typing import Any

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.core.runtime.tree import leaves
from sleuth.core.subject import Parts
from sleuth.probes.lab.one_batch import Samples, change_inputs
from sleuth.probes.lab.probe import Lab

# With fewer, one answer for all may be right by chance.
LEAST_SAMPLES = 4
# Without inputs nobody gets below what one answer for all leaves: half of it is proof enough of another source.
PROOF = 0.4
# Standing this close to one answer for all, for this many steps, it has found that answer and no better one.
CLOSE = 0.05
STANDING = 20


def without_inputs(lab: Lab, samples: Samples) -> Parts:
    """Every sample gets the first one's inputs: valid ids, masks and lengths, and nothing to tell samples apart by."""
    if samples.count is None:
        raise Unsupported("the batch cannot be cut into samples")
    if samples.count < LEAST_SAMPLES:
        raise Unsupported(f"only {samples.count} samples could be used")
    if not samples.distinct:
        raise Unsupported("the batch holds equal inputs")
    if lab.bench.repeats_dice:
        raise Unsupported("dropout and the like fall the same way at every step here, which tells the samples apart")
    targets = [lab.adapter.values(a) for _, a in leaves(samples.batch.target, lab.adapter.is_array)]
    if not targets:
        raise Unsupported("no target could be told from the inputs")
    if all((t == t[:1]).all() for t in targets):
        raise Unsupported("all samples of the batch have the same target")

    def first(array: Any) -> Any:
        values = lab.adapter.values(array)
        return lab.adapter.like(np.repeat(values[:1], len(values), axis=0), array)

    return change_inputs(lab, samples.batch, first)


def found_out(floor: float, constant: float | None, steps: int) -> Callable[[list[float]], bool]:
    """Do the losses without inputs tell? At the latest after as many steps as with inputs where nothing else is known."""

    def done(losses: list[float]) -> bool:
        if constant is None:
            return len(losses) >= steps
        room = constant - floor
        recent = losses[-STANDING:]
        found = abs(recent[-1] - constant) < CLOSE * room and min(recent) > constant - CLOSE * room
        return losses[-1] < floor + PROOF * room or (len(losses) >= max(steps, STANDING) and found)

    return done
