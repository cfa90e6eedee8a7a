"""Optimisers of one class that step one after the other on the same weights."""

from typing import Any

import numpy as np

from sleuth.adapters.numpy.watching.weights import Weights
from sleuth.core.observation import Optimiser


class Predecessors:
    def __init__(self, given: Any, weights: Weights) -> None:
        self._given, self._weights = given, weights
        self._met: list[Any] = []  # kept alive: an id must not come again
        self._steps: list[int] = []
        self._passes: list[int] = []

    def knows(self, optimiser: Any) -> bool:
        """Another one is the training's if it holds weights of the model."""
        return optimiser is self._given or any(o is optimiser for o in self._met) or self._weights.shared_with(optimiser)[1] > 0

    @property
    def latest(self) -> Any:
        return self._met[-1] if self._met else None

    def passed(self, steps: int) -> None:
        """Of the one that stepped last."""
        if self._steps:
            self._steps[-1] += steps

    def stepped(self, optimiser: Any, step: int, passes: int) -> Optimiser | None:
        """Told when it steps for the first time."""
        if self._met and self._met[-1] is optimiser:
            self._steps[-1] += 1
            return None
        known = next((i for i, o in enumerate(self._met) if o is optimiser), None)
        before = len(self._met) - 1 if self._met else None
        held, shared = self._weights.shared_with(optimiser)
        told = Optimiser(
            step,
            known if known is not None else len(self._met),
            type(optimiser).__name__,
            held,
            stateful=_remembers(optimiser, held),
            given=optimiser is self._given,
            returned=known is not None,
            predecessor=before,
            shared=shared if before is not None else 0,
            predecessor_parameters=self._weights.shared_with(self._met[-1])[0] if before is not None else 0,
            predecessor_steps=self._steps[-1] if before is not None else 0,
            passes=max(0, passes - self._passes[-1]) if before is not None else 0,
        )
        if known is None:
            self._met.append(optimiser)
            self._steps.append(1)
            self._passes.append(passes)
        return told


def _remembers(optimiser: Any, held: int) -> bool:
    """Besides the weights it holds arrays: means of gradients, velocities."""
    count = sum(_count(v) for v in getattr(optimiser, "__dict__", {}).values())
    return count > held


def _count(thing: Any) -> int:
    if isinstance(thing, np.ndarray):
        return 1
    values = thing.values() if isinstance(thing, dict) else thing if isinstance(thing, list | tuple) else ()
    return sum(_count(v) for v in values)
