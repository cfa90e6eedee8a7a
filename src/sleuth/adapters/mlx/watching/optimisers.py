"""Who steps the model. Optimisers are held weakly: one that the user lets go must take its state along."""

import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.optimizers import Optimizer
from mlx.utils import tree_flatten

from sleuth.adapters.mlx import created_at
from sleuth.adapters.mlx.arrays import has_values, values
from sleuth.adapters.mlx.model_parts import parameters
from sleuth.core.observation import Optimiser

OWN = ("step", "learning_rate")


@dataclass
class Held:
    ref: "weakref.ref[Optimizer]"
    number: int
    given: bool
    steps: int = 0
    names: frozenset[str] = frozenset()
    carried: bool = False
    rewritten: bool = False
    seen: Optimiser | None = None


class Optimisers:
    def __init__(self, given: list[Optimizer], model: nn.Module) -> None:
        self._held: list[Held] = [Held(weakref.ref(o), number, True) for number, o in enumerate(given)]
        self._latest: Held | None = None
        # One weight stands for all: is it still what the last step left?
        own = [(e.module, e.path.rpartition(".")[2]) for e in parameters(model) if e.trainable]
        self._watched = next(((module, name) for module, name in own if name in module), None)
        self._weight: Any = None
        self._after: Any = None

    def __len__(self) -> int:
        return len(self._held)

    @property
    def alive(self) -> list[Optimizer]:
        return [o for held in self._held if (o := held.ref()) is not None]

    def number(self, optimiser: Optimizer) -> int:
        return self._find(optimiser).number

    def gradient_begins(self) -> None:
        """What a gradient leaves in the model are other arrays: this is the one that the last step left."""
        if self._watched is not None:
            self._weight = self._watched[0].get(self._watched[1])

    def begins(self, optimiser: Optimizer) -> None:
        """Its step."""
        held = self._find(optimiser)
        if held.seen is None:
            held.carried = _remembers(optimiser)
            held.rewritten = self._latest is not None and _rewritten(self._after, self._weight)

    def stepped(self, optimiser: Optimizer, step: int, after: Callable[[], dict[str, mx.array]]) -> Optimiser | None:
        """What is to be said of this optimiser, if it is new or comes back; `after` tells what it stepped, by name."""
        held, previous = self._find(optimiser), self._latest
        self._latest = held
        held.steps += 1
        told = None
        if held.seen is None:
            held.names = frozenset(after())
            told = held.seen = self._described(held, optimiser, step, previous)
        elif previous is not None and previous is not held and previous.number > held.number and not held.seen.returned:
            told = held.seen = replace(held.seen, step=step, returned=True)
        self._after = None if self._watched is None else self._watched[0].get(self._watched[1])
        return told

    def close(self) -> None:
        """Nothing of the model is held any more."""
        self._watched = self._weight = self._after = None

    def _find(self, optimiser: Optimizer) -> Held:
        found = next((held for held in self._held if held.ref() is optimiser), None)
        if found is None:
            found = Held(weakref.ref(optimiser), len(self._held), False)
            self._held.append(found)
        return found

    def _described(self, held: Held, optimiser: Optimizer, step: int, previous: Held | None) -> Optimiser:
        seen = Optimiser(
            step,
            held.number,
            type(optimiser).__name__,
            len(held.names),
            stateful=_remembers(optimiser),
            given=held.given,
            carried=held.carried,
            location=created_at.line_of(optimiser),
        )
        shared = 0 if previous is None else len(previous.names & held.names)
        if previous is None or previous is held or not shared:
            return seen
        return replace(
            seen,
            predecessor=previous.number,
            shared=shared,
            predecessor_parameters=len(previous.names),
            predecessor_steps=previous.steps,
            rewritten=held.rewritten,
        )


def _remembers(optimiser: Optimizer) -> bool:
    state: Any = {key: value for key, value in optimiser.state.items() if key not in OWN}
    return any(isinstance(array, mx.array) and array.ndim for _, array in tree_flatten(state))


def _rewritten(one: Any, other: Any) -> bool:
    """Did somebody write into the weights since the last step? Also where that cannot be seen: nothing is computed for it."""
    if not isinstance(one, mx.array) or not isinstance(other, mx.array):
        return True
    if one is other:
        return False
    return not has_values(one) or not has_values(other) or not np.array_equal(values(one), values(other))
