"""What keeps a batch from being learned by heart: what the numbers of all experiments point to, and what they rule out."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod

from sleuth.core.history import Seen
from sleuth.core.observation import Architecture, Layer, LossCall, Role, Split
from sleuth.core.trial import Overfit

# Of the outputs' spread over samples: noise as large as this drowns the difference between two samples.
DROWNED = 0.5
# Of the room between floor and one answer for all: who stands this close gives all samples one answer.
ALIKE = 0.05
# Of the outputs' noise-free spread at most, where a model answers all samples alike.
FADED = 1e-4
# Layers that pass on so few numbers a sample, and fewer than they get.
NARROW = 2
MANY = 8
# Of the start: a loss that ends higher was driven up.
RISEN = 1.1
# Of the scores' own size: rounding of float32.
LEVEL = 1e-4
WEIGHTY = ("linear", "conv", "recurrent")


@dataclass(frozen=True)
class Obstacle:
    sign: str  # the numbers that point to it
    fix: str


def obstacle(seen: Seen, trial: Overfit, best: tuple[float, ...]) -> Obstacle | None:
    """The first that the numbers point to, the surest first."""
    looks: tuple[Callable[[], Obstacle | None], ...] = (
        lambda: _rising(best),
        lambda: _noise(trial),
        lambda: _narrow(seen, trial),
        lambda: _fading(seen),
        lambda: _bounded(seen),
        lambda: _one_answer(trial, best),
        lambda: _levelled(seen),
    )
    return next((found for look in looks if (found := look()) is not None), None)


def ruled_out(seen: Seen, trial: Overfit) -> Iterator[str]:
    """In words, what was measured and is not the reason."""
    if trial.tuned_lr is not None:
        yield f"the learning rate (also at {trial.tuned_lr:.1g}, which a range test found)"
    if trial.noise is not None and trial.spread and trial.noise < DROWNED / 10 * trial.spread:
        yield "noise"
    ratio = _gradient_ratio(seen)
    if ratio is not None and ratio > 10 * FADED:
        yield "fading gradients"


def _rising(best: tuple[float, ...]) -> Obstacle | None:
    if min(best[1:], default=best[0]) < best[0] or best[-1] < RISEN * abs(best[0]):
        return None
    return Obstacle(
        f"the loss only rises, from {best[0]:.3g} to {best[-1]:.3g}",
        "Look for a wrong sign: a loss that is to be made large (a likelihood, an accuracy) needs a minus before backward(), and "
        "an update must subtract the gradient.",
    )


def _noise(trial: Overfit) -> Obstacle | None:
    if trial.noise is None or trial.spread is None or trial.noise <= DROWNED * trial.spread:
        return None
    return Obstacle(
        f"also in evaluation mode the outputs differ from pass to pass by {trial.noise:.2g}, and from sample to sample by "
        f"{trial.spread:.2g}",
        "Take out or weaken what draws random numbers in forward: noise added to the inputs or inside, dropout that does not "
        "look at self.training.",
    )


def _narrow(seen: Seen, trial: Overfit) -> Obstacle | None:
    architecture = seen.maybe(Architecture)
    layers = [x for x in architecture.layers if x.family in WEIGHTY] if architecture else []
    widths = [(x.path, x.settings.get("in"), x.settings.get("out")) for x in layers[:-1]]
    narrow = [(path, a, b) for path, a, b in widths if isinstance(a, int) and isinstance(b, int) and b <= NARROW < a]
    if not narrow:
        return _narrow_door(seen, layers)
    path, given, passed = min(narrow, key=lambda x: x[2])
    number = "one number" if passed == 1 else f"{passed} numbers"
    return Obstacle(
        f"{path} turns {given} numbers into {passed}: all that later layers learn about a sample is {number}",
        f"Make {path} wider: sixteen outputs instead of {passed} are enough to try.",
    )


def _narrow_door(seen: Seen, layers: list[Layer]) -> Obstacle | None:
    """A first layer that gets next to nothing of a large input: pooled or cut before the model looks at it."""
    batches = seen.batches(Split.TRAIN)[:1]
    given = max((prod(f.shape[1:]) for b in batches for f in b.inputs), default=0)
    first = layers[0] if layers else None
    if first is None or first.family != "linear" or any(x.family == "recurrent" for x in layers):
        return None
    got = first.settings.get("in")
    if not isinstance(got, int) or got > NARROW or given <= MANY * got:
        return None
    return Obstacle(
        f"the first layer, {first.path}, gets {got} of the {given} numbers of a sample",
        f"Look at what happens before {first.path}: pooling, an average or an index there throws the sample away.",
    )


def _gradient_ratio(seen: Seen) -> float | None:
    gradients = [g for g in seen.first(Role.GRADIENT) if g.rms > 0]
    return gradients[0].rms / gradients[-1].rms if len(gradients) > 2 else None


def _fading(seen: Seen) -> Obstacle | None:
    ratio = _gradient_ratio(seen)
    if ratio is None or ratio >= FADED:
        return None
    return Obstacle(
        f"the gradient of the first layer is {ratio:.1g} of the last one's",
        "Match the initialisation to the activation, add normalisation or residual connections, or use fewer layers.",
    )


def _bounded(seen: Seen) -> Obstacle | None:
    for call in seen.all(LossCall)[:1]:
        output, target = call.argument("output"), call.argument("target")
        low, high = {"sigmoid": (0, 1), "tanh": (-1, 1), "relu": (0, float("inf"))}.get(
            output.producer or "" if output else "", (-float("inf"), float("inf"))
        )
        if output is None or target is None or call.family not in ("mse", "l1", "huber"):
            continue
        values = target.facts.statistics
        if values.min < low or values.max > high:
            return Obstacle(
                f"a {output.producer} at the end keeps outputs in [{low:g}, {high:g}], and targets reach from {values.min:.3g} "
                f"to {values.max:.3g}",
                f"Leave out the {output.producer} after the last layer.",
            )
    return None


def _levelled(seen: Seen) -> Obstacle | None:
    """Scores whose sum over the classes is the same for every sample were normalised: their differences are bounded."""
    for call in seen.all(LossCall)[:1]:
        output = call.argument("output")
        if output is None or call.family != "cross-entropy" or len(output.facts.shape) != 2 or len(output.axis_sums) != 2:
            continue
        low, high = output.axis_sums[1]
        if high - low <= LEVEL * output.facts.statistics.rms * output.facts.shape[1]:
            return Obstacle(
                f"the {output.facts.shape[1]} scores of every sample sum to the same ({low:.2g}): they are normalised after the "
                "last layer, which keeps them from growing apart",
                "Leave out the normalisation after the last layer, or put it before that layer.",
            )
    return None


def _one_answer(trial: Overfit, best: tuple[float, ...]) -> Obstacle | None:
    if trial.constant is None or trial.constant <= trial.floor:
        return None
    left = (min(best[-5:]) - trial.floor) / (trial.constant - trial.floor)
    if abs(left - 1) > ALIKE:
        return None
    return Obstacle(
        f"that is what one and the same answer for all samples reaches ({trial.constant:.3g}): nothing that tells samples apart "
        "gets through",
        "Follow two different samples through forward and print each layer's output: where they become equal (pooling over too "
        "much, an axis that is averaged, a layer that is switched off) their difference is lost.",
    )
