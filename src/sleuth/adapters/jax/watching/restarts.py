"""Whether an optimiser's state begins anew: states of optax count their steps."""

from collections.abc import Iterator

from sleuth.core.location import Location
from sleuth.core.observation import Observation, Optimiser


class Restarts:
    def __init__(self, kind: str, place: Location | None = None) -> None:
        self._kind, self._place = kind, place
        self._number = 0
        self._count: int | None = None
        self._began = 0  # the step at which the present state was first met
        self._first: float | None = None
        self._last: float | None = None

    def met(self, step: int, count: int, parameters: int, loss: float | None) -> Iterator[Observation]:
        if self._count is None:
            yield Optimiser(step, 0, self._kind, parameters, stateful=True, location=self._place)
        elif count < self._count:
            self._number += 1
            yield Optimiser(
                step,
                self._number,
                self._kind,
                parameters,
                stateful=True,
                given=False,
                predecessor=self._number - 1,
                shared=parameters,
                predecessor_parameters=parameters,
                predecessor_steps=step - count - self._began,
                rewritten=self._begins_again(loss),
            )
            self._began = step - count
        self._count = count
        self._first = loss if self._first is None else self._first
        self._last = loss if loss is not None else self._last

    def _begins_again(self, loss: float | None) -> bool:
        """Back near the loss of the first step, the weights have begun anew as well: that is another training."""
        if loss is None or self._first is None or self._last is None:
            return False
        return loss - self._last > 0.5 * (self._first - self._last) > 0
