"""Who steps: an optimiser that takes the place of another one starts without its memory."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.source_lines import compiled_with
from sleuth.adapters.keras.user_lines import made_at, spot_now
from sleuth.core.location import Spot
from sleuth.core.observation import Optimiser


class Optimisers:
    def __init__(self, model: Any) -> None:
        self._model = model
        # Kept alive: an id is not given twice. (optimiser, its variables, steps taken, passes over the data before it)
        self._met: list[tuple[Any, frozenset[int], list[int], int]] = []
        self._carried: list[tuple[Any, bool]] = []

    def meet(self, optimiser: Any) -> None:
        """Before it steps: does it come with a memory?"""
        if not any(one is optimiser for one, _ in self._carried):
            self._carried.append((optimiser, any(np.any(backend.values(v)) for v in _slots(optimiser))))

    def stepping(
        self, optimiser: Any, variables: Callable[[], Sequence[Any]], step: int, passes: int
    ) -> tuple[int, Optimiser | None]:
        """Which lane of the training the step belongs to, and what is to be told of an optimiser that has not stepped before."""
        for number, (one, _, steps, _) in enumerate(self._met):
            if one is optimiser:
                steps[0] += 1
                return self._lane(number), None
        held = frozenset(id(v) for v in variables())
        before = next((n for n in reversed(range(len(self._met))) if self._met[n][1] & held), None)
        self._met.append((optimiser, held, [1], passes))
        return self._lane(len(self._met) - 1), self._told(optimiser, held, step, before, passes)

    def _lane(self, number: int) -> int:
        """Optimisers of the same variables are one after the other in one lane."""
        if not number:
            return 0
        lanes: list[frozenset[int]] = []
        for _, held, _, _ in self._met[: number + 1]:
            if not any(held & lane for lane in lanes):
                lanes.append(held)
        return next(n for n, lane in enumerate(lanes) if lane & self._met[number][1])

    def _told(self, optimiser: Any, held: frozenset[int], step: int, before: int | None, passes: int) -> Optimiser:
        slots = _slots(optimiser)
        known = self._met[before] if before is not None else None
        return Optimiser(
            step,
            len(self._met) - 1,
            type(optimiser).__name__,
            len(held),
            stateful=bool(slots),
            given=len(self._met) == 1,
            predecessor=before,
            shared=len(held & known[1]) if known else 0,
            predecessor_parameters=len(known[1]) if known else 0,
            predecessor_steps=known[2][0] if known else 0,
            carried=any(carried for one, carried in self._carried if one is optimiser),
            passes=max(passes - known[3], 1) if known and passes else 0,
            location=made_at(optimiser) or compiled_with(self._model, "optimizer"),
        )


class HandedVariables:
    """Which variables were ever handed to an optimiser: a step of one's own need not give it all that could be trained."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._known: set[tuple[int, int, int]] = set()
        self._given: set[int] = set()
        self._could: set[int] = set()
        self.spot: Spot | None = None  # where fewer were given than could be

    def note(self, variables: Sequence[Any]) -> None:
        """Cheap where they are those of an earlier step."""
        key = (len(variables), id(variables[0]), id(variables[-1])) if variables else (0, 0, 0)
        if key in self._known:
            return
        self._known.add(key)
        self._given.update(map(id, variables))
        could = {id(v) for v in self._model.trainable_variables}
        self._could |= could
        if not could <= {id(v) for v in variables}:
            self.spot = spot_now()

    def left_out(self) -> set[int]:
        """By their ids: they could be trained then, can be now, and nobody was given them."""
        return {id(v) for v in self._model.trainable_variables} & self._could - self._given if self._given else set()


def _slots(optimiser: Any) -> list[Any]:
    """What it remembers of earlier gradients: not the count of steps, not the rate."""
    own = {id(optimiser.iterations), id(getattr(optimiser, "_learning_rate", None))}
    return [v for v in optimiser.variables if id(v) not in own and v.shape]
