"""The losses of a training as a curve: whether they can be compared at all, their level, their noise, their trend."""

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from sleuth.core.history import Seen
from sleuth.core.observation import WITH_GRAPH, WITHOUT_GRAPH, CallKind, Evaluation, LossCall, Split, Step
from sleuth.core.reading.wiring import classifies

# A part of a curve is judged by the means of so many blocks: steps that resemble each other then count once.
BLOCKS = 8
# Supervised training asks its model without a graph for validation only: between few steps, and seldom for more than it trains.
ASKING_SHARE = 0.3
ASKING_RATIO = 4.0
# The passes of one step against another's: accumulation has the same number at almost all of them.
UNEVEN = 2.0
# Of all steps: so many changes of sign.
CROSSINGS = 0.05
# Losses that all lie below the middle of a later part: by chance, of so many steps, once in ten million.
CALM_STEPS = 24
CALM_PARTS = 32
# Of a curve: what is called its end.
LATE = 0.25
# Values that are told to be sums; and how far a loss on other data may be from the training's, in times.
LEAST_SUMS = 4
RESEMBLES = 2.0


@dataclass(frozen=True)
class Curve:
    """Losses that can be compared with each other. Of a long training every so many steps are here."""

    steps: np.ndarray
    losses: np.ndarray
    rates: np.ndarray  # NaN where unknown

    def __len__(self) -> int:
        return len(self.losses)


@dataclass(frozen=True)
class Level:
    mean: float
    error: float  # standard error of the mean, over blocks


@dataclass(frozen=True)
class Line:
    """A part of a curve as a straight line."""

    first: float
    last: float
    error: float  # of the fall from first to last

    @property
    def fall(self) -> float:
        return self.first - self.last


@dataclass(frozen=True)
class Relapse:
    """The loss was calm and low once, and is higher for good since."""

    since: int  # place in the curve
    low: float
    usual_low: float  # what nine of ten losses of the calm part stay below
    late: float  # the middle of the end
    swings: tuple[float, float]  # a tenth of the end is lower, a tenth higher
    sudden: bool
    recovering: bool


def loss_curve(seen: Seen, least: int = 0) -> Curve | str:
    """Of at least so many steps; or the reason why the losses of this training do not make one curve."""
    curve = heard_curve(seen)
    if isinstance(curve, str):
        return curve
    if (reason := _uneven([s for s in seen.all(Step) if s.heard and s.loss is not None])) is not None:
        return reason
    if _about_zero(curve.losses):
        return "the loss swings about zero, as that of a policy does: its level says nothing"
    if len(curve) < least:
        return f"only {len(curve)} steps were seen"
    return curve


def heard_curve(seen: Seen) -> Curve | str:
    """The losses of the one optimiser, whether or not they can be compared with each other; or why there are none."""
    steps = [s for s in seen.all(Step) if s.heard]
    optimisers = Counter(s.optimiser for s in steps)
    if not steps:
        return "no loss was heard"
    if len(optimisers) > 1:
        return "there are several optimisers, each with a loss of its own: as in a GAN, they may pull against each other"
    # A step that a scaler skipped may have lost its loss to an overflow; the scaler has seen to it.
    if any(s.loss is None and CallKind.SKIPPED not in s.calls for s in steps):
        return "the loss became NaN or infinite"
    steps = [s for s in steps if s.loss is not None]
    losses = np.array([s.loss for s in steps], dtype=np.float64)
    rates = np.array([math.nan if s.lr is None else s.lr for s in steps])
    return Curve(np.array([s.step for s in steps], dtype=np.int64), losses, rates)


def _uneven(steps: list[Step]) -> str | None:
    steps = [s for s in steps if s.calls and not s.unusual]  # of others only the loss is known
    asked = [sum(s.counts.get(kind, 0) for kind in WITHOUT_GRAPH) for s in steps]
    trained = sorted(sum(s.counts.get(kind, 0) for kind in WITH_GRAPH) for s in steps)
    if sum(1 for n in asked if n) > ASKING_SHARE * len(steps) or sum(asked) > ASKING_RATIO * max(sum(trained), 1):
        return "the model is asked for answers all along, as in reinforcement learning: its loss may do anything while it learns"
    if trained and trained[len(trained) * 9 // 10] > UNEVEN * max(trained[len(trained) // 10], 1):
        return "steps are made of different numbers of passes: their losses cannot be compared"
    return None


def _about_zero(losses: np.ndarray) -> bool:
    """Again and again: a likelihood may go from above zero to below, but does so once."""
    return bool((np.diff(np.sign(losses)) != 0).sum() > CROSSINGS * len(losses))


def validation_curve(seen: Seen, metric: str = "loss") -> tuple[np.ndarray, np.ndarray]:
    """Steps and values. What the user logged goes before what was measured, unless it is a sum that nobody sets back."""
    found = [e for e in seen.all(Evaluation) if e.split is Split.VALIDATION and metric in e.metrics]
    logged, measured = _by_step([e for e in found if e.logged], metric), _by_step([e for e in found if not e.logged], metric)
    if not len(logged[0]) or (metric == "loss" and adds_up(*logged, heard_curve(seen))):
        return measured
    return logged


def _by_step(found: list[Evaluation], metric: str) -> tuple[np.ndarray, np.ndarray]:
    values = {e.step: float(e.metrics[metric]) for e in found if math.isfinite(e.metrics[metric])}
    return np.array(list(values), dtype=np.int64), np.array(list(values.values()))


def adds_up(steps: np.ndarray, values: np.ndarray, curve: Curve | str) -> bool:
    """Is this a total since the training began? Then each value exceeds the last by a whole loss, as high as the training's
    is at the time, or by as many of them as there are batches."""
    if isinstance(curve, str) or len(values) < LEAST_SUMS:
        return False
    spans = np.split(curve.losses, np.searchsorted(curve.steps, steps))[:-1]
    if any(not len(part) or part.mean() <= 0 for part in spans):
        return False
    # A validation stands between the steps before it and those after it.
    before = np.array([part.mean() for part in spans])
    after = np.append(before[1:], before[-1])
    added = np.diff(values, prepend=0.0)
    if added.min() <= 0:
        return False
    times = np.median(added / before)
    low, high = np.minimum(before, after) * times / RESEMBLES, np.maximum(before, after) * times * RESEMBLES
    return bool(((low <= added) & (added <= high)).all())


def too_few(values: np.ndarray, least: int) -> str | None:
    """Why these validations do not make a curve."""
    if len(values) >= least:
        return None
    return f"validation was seen {len(values)} times only" if len(values) else "no validation loss was seen"


def guessing(seen: Seen) -> float | None:
    """The loss of mere guessing, where the training's loss is one plain call whose kind tells; None: not known."""
    found = [_guess(call) for call in seen.all(LossCall) if call.value is not None]
    known = [g for g in found if g is not None]
    return float(np.mean(known)) if known and len(known) == len(found) else None


def _guess(call: LossCall) -> float | None:
    output, target = call.argument("output"), call.argument("target")
    plain = call.value is not None and call.returned is not None and math.isclose(call.value, call.returned, rel_tol=0.02)
    if output is None or target is None or not plain or call.reduction not in (None, "mean"):
        return None
    shape = output.facts.shape
    if classifies(call) and not target.facts.is_float and len(shape) > 1:
        return math.log(shape[1])
    if call.family in ("bce", "bce-logits") and target.facts.whole_share == 1:
        return math.log(2)
    if call.family == "mse" and shape == target.facts.shape:
        return target.facts.statistics.variance
    return None


def find_relapse(losses: np.ndarray) -> Relapse | None:
    """Nothing is assumed about the shape of the noise: a calm part lies below the middle of the end with every loss."""
    size = max(CALM_STEPS, len(losses) // CALM_PARTS)
    end = max(int(LATE * len(losses)), 2 * size)
    if len(losses) < end + 2 * size:
        return None
    late, earlier = losses[-end:], losses[:-end]
    middle = float(np.median(late))
    windows = np.lib.stride_tricks.sliding_window_view(earlier, size)
    calm = np.flatnonzero(windows.max(axis=1) < middle)
    if not len(calm):
        return None
    since = int(calm[-1]) + size
    after = losses[since:]
    # Data in a fixed order have their calm parts again and again.
    if np.lib.stride_tricks.sliding_window_view(after, size).max(axis=1).min() < np.median(after):
        return None
    best = windows[calm[windows[calm].mean(axis=1).argmin()]]
    low, rise = float(best.mean()), middle - float(best.mean())
    means = np.convolve(after, np.full(size, 1 / size), "valid")
    risen = int(np.argmax(means > low + 0.8 * rise)) + size
    course = line(late)
    return Relapse(
        since=since,
        low=low,
        usual_low=float(np.quantile(best, 0.9)),
        late=middle,
        swings=(float(np.quantile(late, 0.1)), float(np.quantile(late, 0.9))),
        sudden=risen < 0.15 * len(losses) + 2 * size,
        recovering=course.fall > max(3 * course.error, 0.1 * rise),
    )


def level(values: np.ndarray) -> Level:
    means = _means(values)
    error = float(means.std(ddof=1)) / math.sqrt(len(means)) if len(means) > 1 else 0.0
    return Level(float(values.mean()), error)


def line(values: np.ndarray) -> Line:
    means = _means(values)
    if len(means) < 3:
        return Line(float(means[0]), float(means[-1]), math.inf)
    places = np.linspace(-0.5, 0.5, len(means)) * (1 - 1 / len(means))
    spread = float(np.square(places).sum())
    slope = float(places @ means / spread)
    rest = means - means.mean() - slope * places
    error = math.sqrt(float(np.square(rest).sum()) / (len(means) - 2) / spread)
    middle = float(means.mean())
    return Line(middle - slope / 2, middle + slope / 2, error)


def noise(values: np.ndarray) -> float:
    """The standard deviation of what is not trend: from second differences, so that a few jumps do not count."""
    if len(values) < 4:
        return 0.0
    return float(1.4826 * np.median(np.abs(np.diff(values, 2))) / math.sqrt(6))


def autocorrelation(values: np.ndarray, lag: int) -> float:
    rest = values - values.mean()
    power = float(rest @ rest)
    return float(rest[:-lag] @ rest[lag:]) / power if power > 0 and len(rest) > lag else 0.0


def _means(values: np.ndarray) -> np.ndarray:
    return np.array([block.mean() for block in np.array_split(values, min(BLOCKS, len(values)))])
