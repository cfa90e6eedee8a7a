"""What a training has not shown: without it nobody may call it healthy."""

import math
from collections import Counter
from collections.abc import Mapping

import numpy as np

from sleuth.core.history import Seen
from sleuth.core.observation import Evaluation, Role, Split, Step
from sleuth.core.reading.curve import Curve, heard_curve, line, loss_curve, noise
from sleuth.core.trial import GradientCheck

# Fewer say nothing about a training, whatever the checks saw of its parts.
LEAST_STEPS = 8
# Standard errors that a rise or a fall must exceed.
SURE = 3.0
# Of the loss at the start: what moved by less did not move.
STILL = 0.01
# Of the steps: the beginning and the end.
EARLY = 0.1
LATE = 1 / 3
# A training that is quick has learned a lot within a tenth of its steps.
FIRST = 3
# Of the checks that were asked: where fewer could look, that they found nothing says little.
LEAST_LOOKED = 0.25
# Of a gradient against the numerical one: beyond this it is no longer the same.
SAME = 1e-2


def unanswered(seen: Seen) -> str:
    """Of a training in which nothing was found: why that is no health, and what to do; empty when it has shown that it learns."""
    count = seen.count(Step)
    if count < LEAST_STEPS:
        heard = "only one step was" if count == 1 else f"only {count} steps were"
        return f"{heard} heard, too few to tell whether the model learns; let it train for 100 steps or more."
    curve = heard_curve(seen)
    if isinstance(curve, str):
        # Two players whose losses pull against each other, and others that say why they cannot be read: the checks that looked
        # have to do.
        silent = not any(step.heard for step in seen.all(Step))
        if not silent or _told_better(seen):
            return ""
        return f"{curve}, so whether the model learns is not known; tell it: sleuth.watch(…), then watch.log(loss=…)."
    if len(curve) < LEAST_STEPS:
        return f"only {len(curve)} losses were heard, too few to tell whether the model learns; let it train longer."
    return _course(seen, curve)


def little_examined(looked: int, blind: Mapping[str, str]) -> str:
    """Of a training that learns: why that is not enough, when most checks could not look."""
    asked = looked + len(blind)
    if looked >= LEAST_LOOKED * asked:
        return ""
    reason, _ = Counter(blind.values()).most_common(1)[0]
    often = reason.rstrip(".")
    return f"{len(blind)} of {asked} could not look, most often because {often}; what they would have said is not known."


def backward_holds(seen: Seen) -> bool:
    """Somebody wrote the backward, and the gradients that could be tried, of half the weights or more, are the loss's derivative.

    In such a loop most checks have nothing to look at: there are no calls of an optimiser, no graph, no modes. What goes wrong
    in it is its backward, and that was tried. A framework's own backward is right anyway and proves nothing."""
    found = seen.maybe(GradientCheck)
    if found is None or not found.by_hand or found.repeat:
        return False
    weights = {path for frame in seen.frames(Role.WEIGHT) for path in frame.paths}
    tried = [p for p in found.parameters if p.path in weights]
    # Not every statement shows the gradient that it is given: w = optimiser.update(w, x.sum(0)).
    return 2 * len(tried) >= len(weights) > 0 and all(p.relative_error <= SAME for p in tried)


def _course(seen: Seen, curve: Curve) -> str:
    comparable = not isinstance(loss_curve(seen), str)
    starts, end, late = _starts(curve.losses), *_end(curve.losses)
    spread = noise(curve.losses)
    rises = [end - start > _margin(start, spread, size, late) for start, size in starts]
    # A loss that need not fall while training works, as in reinforcement learning, must rise all along to be doubted.
    risen = rises[0] if comparable else all(rises)
    way = f"went from {starts[0][0]:.3g} to {end:.3g} in {curve.steps[-1] - curve.steps[0] + 1:,} steps"
    if _about_zero(curve.losses):
        return ""
    if risen:
        return f"the loss {way}: it ends above its start, and no check could tell why; try a rate ten times smaller first."
    falls = any(start - end > _margin(start, spread, size, late) for start, size in starts)
    if falls or _trend(curve.losses) or not comparable or _told_better(seen):
        return ""
    return (
        f"the loss {way}, which is no fall beyond its noise, and no check could tell why; train longer, or try whether one "
        "batch alone can be learned."
    )


def _starts(losses: np.ndarray) -> list[tuple[float, int]]:
    """The level of the first loss, of the first few and of the first tenth, each with the number of losses in it."""
    sizes = (1, FIRST, max(int(EARLY * len(losses)), FIRST))
    return [(float(np.median(losses[:size])), size) for size in sizes]


def _end(losses: np.ndarray) -> tuple[float, int]:
    size = max(int(LATE * len(losses)), FIRST)
    return float(np.median(losses[-size:])), size


def _margin(start: float, spread: float, size: int, late: int) -> float:
    return max(SURE * spread * math.sqrt(1 / size + 1 / late), STILL * abs(start))


def _trend(losses: np.ndarray) -> bool:
    course = line(losses)
    return course.fall > max(SURE * course.error, STILL * abs(course.first))


def _about_zero(losses: np.ndarray) -> bool:
    return bool(losses.min() < 0 < losses.max())


def _told_better(seen: Seen) -> bool:
    """On the validation data, or by what the user logged, the loss came down."""
    for split in (Split.TRAIN, Split.VALIDATION):
        values = [e.metrics["loss"] for e in seen.all(Evaluation) if e.split is split and "loss" in e.metrics]
        if len(values) > 1 and values[0] - min(values) > STILL * abs(values[0]):
            return True
    return False
