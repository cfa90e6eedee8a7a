"""Which rule moves the weights: the first step of known optimisers, fitted to the step that was taken."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from sleuth.comparing.carrying import read
from sleuth.comparing.distance import apart
from sleuth.comparing.layout import to_common
from sleuth.comparing.learning import ByUnit
from sleuth.comparing.pairing import Joined
from sleuth.comparing.side import Side

FITS = 2e-3
# Fewer entries, or fainter ones, fit any rule.
CLEAR = 1e-5
LEAST = 8
# The first rule that fits about as well as the best one does; below the last digits all fit alike.
BEST, TINY = 3.0, 1e-6
# The rate that a fit finds is the one that the user set, to this.
SAME_RATE = 0.01
ADAM = (0.9, 0.999)
EPSILONS = (1e-8, 1e-7, 1e-6, 1e-5)

Way = Callable[[np.ndarray], np.ndarray]
Direction = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (gradient, weight) → where a step of rate one goes


@dataclass(frozen=True)
class Rule:
    text: str
    rate: float
    direction: Direction
    gradient: np.ndarray
    weight: np.ndarray
    moved: np.ndarray
    misses: float

    def on(self, other: "Rule") -> float:
        """This rule on the other side's gradient: is it what this side did?"""
        if other.gradient.shape != self.moved.shape:
            return float("inf")
        return apart(self.rate * self.direction(other.gradient, other.weight), self.moved)


def rule_of(side: Side, joined: Joined, which: int, slopes: ByUnit, moves: ByUnit) -> Rule | None:
    """The simplest rule that fits; of several, the one whose rate is what the user set."""
    gradient, weight, moved = _entries(side, joined, which, slopes, moves)
    if gradient.size < LEAST or not np.any(moved):
        return None
    fitting = []
    for text, direction in _rules(dict(side.settings.optimiser_options)):
        way = direction(gradient, weight)
        square = float((way * way).sum())
        rate = float((way * moved).sum()) / square if square else 0.0
        misses = apart(rate * way, moved)
        if rate > 0 and misses < FITS:
            fitting.append(Rule(text, rate, direction, gradient, weight, moved, misses))
    known = side.settings.lr
    as_set = [r for r in fitting if known and abs(r.rate / known - 1) < SAME_RATE]
    likely = as_set or fitting
    best = min((r.misses for r in likely), default=0.0)
    return next((r for r in likely if r.misses <= BEST * best + TINY), None)


def _entries(side: Side, joined: Joined, which: int, slopes: ByUnit, moves: ByUnit) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for twin, slope, move in zip(joined.twins, slopes, moves, strict=True):
        unit = twin.first if which == 0 else twin.other
        weights = to_common(unit, twin.layout[which], read(side, unit))
        for role in (r for r in slope[which] if r in move[which] and r in weights):
            # Both sides' entries, so that the two can be laid over each other.
            g = np.minimum(np.abs(slope[0].get(role, 0)), np.abs(slope[1].get(role, 0)))
            clear = g > CLEAR * max(float(np.max(g, initial=0.0)), 1e-300)
            parts.append(tuple(v[role][clear] for v in (slope[which], weights, move[which])))  # type: ignore[arg-type]
    if not parts:
        return np.zeros(0), np.zeros(0), np.zeros(0)
    g, w, m = (np.concatenate(column) for column in zip(*parts, strict=True))
    return g, w, m


def _rules(options: dict[str, Any]) -> Iterator[tuple[str, Direction]]:
    decay = options.get("weight_decay")
    one, two = options.get("betas") or (options.get("beta_1", ADAM[0]), options.get("beta_2", ADAM[1]))
    decays = [0.0, *([float(decay)] if isinstance(decay, int | float) and decay else [])]
    given = options.get("eps", options.get("epsilon"))
    epsilons = list(dict.fromkeys([*([float(given)] if isinstance(given, int | float) else []), *EPSILONS]))
    for wd in decays:
        coupled = f" with weight decay {wd:g} in the gradient" if wd else ""
        yield f"plain descent{coupled}", partial(_coupled, way=_descent, decay=wd)
    for eps, wd in product(epsilons, decays):
        text = f"Adam, epsilon {eps:g}"
        inside, beside = (f", weight decay {wd:g} {where}" if wd else "" for where in ("in the gradient", "beside it"))
        ways = {
            "": partial(_adam, eps=eps),
            " before the bias correction": partial(_adam, eps=eps / float(np.sqrt(1 - two))),
            ", without bias correction": partial(_uncorrected, eps=eps, one=one, two=two),
        }
        for name, way in ways.items():
            yield f"{text}{name}{inside}", partial(_coupled, way=way, decay=wd)
            if wd:
                yield f"{text}{name}{beside}", partial(_decoupled, way=way, decay=wd)


def _coupled(g: np.ndarray, w: np.ndarray, way: Way, decay: float) -> np.ndarray:
    return way(g + decay * w)


def _decoupled(g: np.ndarray, w: np.ndarray, way: Way, decay: float) -> np.ndarray:
    return way(g) - decay * w


def _descent(g: np.ndarray) -> np.ndarray:
    return -g


def _adam(g: np.ndarray, eps: float) -> np.ndarray:
    return -g / (np.abs(g) + eps)


def _uncorrected(g: np.ndarray, eps: float, one: float, two: float) -> np.ndarray:
    return -(1 - one) * g / (np.sqrt(1 - two) * np.abs(g) + eps)
