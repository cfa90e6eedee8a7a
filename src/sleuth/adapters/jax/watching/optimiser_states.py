"""From which of the user's lines a state of an optimiser of optax is begun, and whether it begins anew: states of optax count
their steps.

Such an optimiser is a named tuple of functions, and a state is what its `init` returns: that field is listened to on the class,
so that nothing is hung on the user's own."""

import sys
from collections import deque
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from sleuth.adapters.jax.watching.channel import Collector
from sleuth.adapters.jax.watching.gradient_patches import HEARING
from sleuth.adapters.jax.watching.naming import users_line
from sleuth.adapters.listening.patches import Failed, attempt
from sleuth.core.location import Location
from sleuth.core.observation import Observation, Optimiser

# Whoever puts optimisers together reads the field, and so do we; no state begins there.
PASSING = ("sleuth", "optax")
MOST = 256
# Whoever calls a step once more on the same state (to compile it, to time it) does not do so again and again.
LEAST_AGAIN = 8

Begins = Callable[[Any, Location], None]


class Begun:
    """Of one training: the lines, with the steps taken before each."""

    def __init__(self) -> None:
        self._known: deque[tuple[int, Location]] = deque(maxlen=MOST)

    def note(self, steps: int, place: Location) -> None:
        self._known.append((steps, place))

    def before(self, step: int) -> Location | None:
        """The last one before this step was taken."""
        return next((place for steps, place in reversed([*self._known]) if steps <= step), None)


def make_traced_field(plain: Any, failed: Failed) -> property:
    """Noted while a step is traced, and at no other time: an optimiser is asked at every step."""

    def update(optimiser: Any) -> Any:
        if HEARING.collector is not None:
            attempt(failed, _note_asked, HEARING.collector, sys._getframe(1))
        return plain.__get__(optimiser, type(optimiser))

    return property(update)


def make_field(plain: Any, told: Begins, failed: Failed) -> property:
    """`plain`: the field as it is."""

    def init(optimiser: Any) -> Any:
        attempt(failed, _note_begun, told, optimiser, sys._getframe(1))
        return plain.__get__(optimiser, type(optimiser))

    return property(init)


def _note_asked(collector: Collector, reader: FrameType) -> None:
    if not _is_passing(reader):
        collector.asked_at = users_line()


def _note_begun(told: Begins, optimiser: Any, reader: FrameType) -> None:
    if not _is_passing(reader) and (place := users_line()) is not None:
        told(optimiser, place)


def _is_passing(reader: FrameType) -> bool:
    return str(reader.f_globals.get("__name__", "")).split(".")[0] in PASSING


class Restarts:
    def __init__(self, kind: str, begun: Begun, place: Location | None = None) -> None:
        """`place`: where the optimiser was made."""
        self._kind, self._begun, self._place = kind, begun, place
        self.called_at: Location | None = None  # the line that gives the step its state, where it is known
        self._number = 0
        self._count: int | None = None
        self._began = 0  # the step at which the present state was first met
        self._first: float | None = None
        self._last: float | None = None
        self._again = 0  # looks at which the first state of all was given once more; -1: it was carried on

    def met(self, step: int, count: int, parameters: int, loss: float | None) -> Iterator[Observation]:
        if self._count is None:
            yield Optimiser(step, 0, self._kind, parameters, stateful=True, location=self._place)
        elif count < self._count:
            steps = step - count - self._began
            yield self._anew(step, parameters, steps, self._begun.before(step - count), rewritten=self._begins_again(loss))
            self._began, self._again = step - count, -1
        elif count == self._count and self._again >= 0:
            # A step adds one to it, whatever it is given: this state is an earlier step's once more.
            self._again += 1
            if self._again >= LEAST_AGAIN:
                yield self._anew(step, parameters, 1, self.called_at, rewritten=self._begins_again(loss))
        else:
            self._again = -1
        self._count = count
        self._first = loss if self._first is None else self._first
        self._last = loss if loss is not None else self._last

    def inside(self, step: int, place: Location, parameters: int, loss: float | None) -> Iterator[Observation]:
        """A step that begins its state itself, whatever came before."""
        self.called_at = place
        yield from self.met(step, 0, parameters, loss)

    def _anew(self, step: int, parameters: int, steps: int, place: Location | None, *, rewritten: bool) -> Optimiser:
        self._number += 1
        return Optimiser(
            step,
            self._number,
            self._kind,
            parameters,
            stateful=True,
            given=False,
            predecessor=self._number - 1,
            shared=parameters,
            predecessor_parameters=parameters,
            predecessor_steps=steps,
            rewritten=rewritten,
            location=place,
        )

    def _begins_again(self, loss: float | None) -> bool:
        """Back near the loss of the first step, the weights have begun anew as well: that is another training."""
        if loss is None or self._first is None or self._last is None:
            return False
        return loss - self._last > 0.5 * (self._first - self._last) > 0
