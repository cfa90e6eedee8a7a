"""Trees that gradients are taken of: a training once one shows that it is stepped along its gradient, or fed back what came out.

A gradient alone may be asked for anything: a picture that fools a network, several networks in turn, the slope of a loss.
"""

import weakref
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import mlx.core as mx
import numpy as np
from mlx.optimizers import Optimizer

from sleuth.adapters.mlx.arrays import arrays_in, evaluated, first_array, values
from sleuth.adapters.mlx.trees.tree import Tree, named, same, shapes_of, tree_of

# Functions that are remembered.
MOST = 16
# Gradients of one function after which it is taken for something else.
MOST_CALLS = 12
# Steps of an optimiser that leave the weights as they were: then they are meant for them, and lost.
ENOUGH_STEPS = 3
# What the change must have in common with the gradient. Adam's first step, which takes each number's sign alone, has more.
ALONG = 0.1
# Two directions in n dimensions have 1/√n in common by chance; so many times that is none.
CHANCE = 4.0


@dataclass
class Candidate:
    shapes: dict[str, tuple[int, ...]]
    before: dict[str, mx.array] = field(default_factory=dict)  # copies: the user may write into his own
    own: dict[str, mx.array] = field(default_factory=dict)
    gradients: dict[str, mx.array] = field(default_factory=dict)  # of all that came since
    losses: list[mx.array] = field(default_factory=list)
    returned: list[mx.array] = field(default_factory=list)  # by a step that is compiled
    calls: int = 0
    steps: int = 0  # that an optimiser of MLX's own was asked for
    optimiser: "weakref.ref[Optimizer] | None" = None

    @property
    def optimisers(self) -> list[Optimizer]:
        found = None if self.optimiser is None else self.optimiser()
        return [] if found is None else [found]


class Candidates:
    def __init__(self) -> None:
        self._known: OrderedDict[Any, Candidate] = OrderedDict()
        self._latest: Candidate | None = None

    def gradient_begins(self, code: Any, weights: Any) -> Tree | None:
        """The tree, if it is one and was stepped since its last gradient."""
        candidate, tree = self._met(code, weights)
        if candidate is None or tree is None:
            return None
        now = named(weights)
        unmoved = candidate.steps >= ENOUGH_STEPS and same(candidate.own, now)  # what steps return is not used
        if candidate.gradients and (unmoved or _moved_along(candidate, now)):
            tree.set_in_place(same(candidate.own, now) and not unmoved)
            return tree
        if not same(candidate.own, now):
            candidate.gradients, candidate.losses = {}, []
        candidate.own, candidate.before = now, {name: mx.array(array) for name, array in now.items()}
        self._latest = candidate
        return None

    def gradient(self, value: Any, gradients: Any) -> None:
        candidate, self._latest = self._latest, None
        if candidate is not None:
            candidate.losses += losses_in(value)
            found, old = named(gradients), candidate.gradients
            candidate.gradients = {n: old[n] + g if n in old else g for n, g in found.items()}

    def compiled_begins(self, code: Any, weights: Any) -> Tree | None:
        """The tree, if this step is given what it returned before."""
        candidate = self._known.get(code)
        own = set() if candidate is None else {id(array) for array in candidate.returned}
        is_own = bool(own) and all(id(array) in own for array in named(weights).values())
        return tree_of(weights, code) if is_own else None

    def compiled(self, code: Any, weights: Any, result: Any, loss: Any) -> None:
        candidate, _ = self._met(code, weights)
        if candidate is not None:
            candidate.before, candidate.losses = dict(named(weights)), losses_in(loss)
            candidate.returned = arrays_in(result)

    def stepped(self, optimiser: Optimizer, gradients: Any) -> None:
        """An optimiser of MLX's own was given gradients of no module."""
        shapes = shapes_of(named(gradients))
        for candidate in self._known.values():
            if candidate.shapes == shapes:
                candidate.optimiser = weakref.ref(optimiser)
                candidate.steps += 1

    def take(self, code: Any) -> Candidate:
        """It is a candidate no more."""
        self._latest = None
        return self._known.pop(code)

    def _met(self, code: Any, weights: Any) -> tuple[Candidate | None, Tree | None]:
        tree = tree_of(weights, code)
        if tree is None:
            return None, None
        found = self._known.get(code)
        if found is None or not tree.fits(found.before or named(weights)):
            found = self._known[code] = Candidate(shapes_of(named(weights)))
            while len(self._known) > MOST:
                self._known.popitem(last=False)
        found.calls += 1
        if found.calls > MOST_CALLS:
            found.before, found.own, found.gradients, found.losses, found.returned = {}, {}, {}, [], []
            return None, None
        return found, tree


def losses_in(value: Any) -> list[mx.array]:
    first = first_array(value)
    return [first] if first is not None and first.size == 1 else []


def _moved_along(candidate: Candidate, now: dict[str, mx.array]) -> bool:
    """Along the gradient, or against it: a wrong sign is for others to find."""
    names = [name for name in now if name in candidate.gradients and name in candidate.before]
    arrays = [a for name in names for a in (candidate.before[name], now[name], candidate.gradients[name])]
    if not names or not all(evaluated(arrays)):
        return False
    before, after, slope = (
        np.concatenate([values(found[name]).ravel().astype(np.float64) for name in names])
        for found in (candidate.before, now, candidate.gradients)
    )
    if not np.isfinite(slope).all():
        return bool(np.isfinite(before).all() and not np.isfinite(after).all())
    with np.errstate(all="ignore"):
        change = after - before
        together = abs(change @ slope) / (np.linalg.norm(change) * np.linalg.norm(slope))
    return bool(together > max(ALONG, CHANCE / change.size**0.5))
