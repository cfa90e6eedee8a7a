"""Steps that are only half listened to: of each its loss, its rate and its time are kept, and whatever is new wakes the watch up.

All of it has to be paid at every step: few functions, each short, no stopwatch, no lines, no order of calls. What the loop is
like shows in the steps that are heard in full, and those come again and again.
"""

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from sleuth.adapters.common.manual_loop.patches import Awake, Doze
from sleuth.adapters.common.manual_loop.step import OWN, number_first, number_in, told
from sleuth.adapters.numpy.watching.weights import argument
from sleuth.core.observation import Observation, Step

if TYPE_CHECKING:
    from sleuth.adapters.numpy.watching.watching import NumpyWatching


class Dozed(NamedTuple):
    """What such a step leaves behind."""

    step: int
    loss: float | None
    lr: float | None
    seconds: Mapping[str, float]
    training: bool
    said: tuple[Observation, ...]


def half_heard(dozed: Dozed) -> list[Observation]:
    """Of such a step neither calls nor their number is known."""
    loss = dozed.loss
    known = loss is not None and math.isfinite(loss)
    step = Step(
        dozed.step,
        loss if known else None,
        dozed.lr,
        training=dozed.training,
        seconds=dozed.seconds,
        heard=loss is not None,
    )
    return [*dozed.said, step]


class LightListener:
    """Hears in the place of Events while `on`. Each of its ears is given the user's function, its arguments, and the ear of
    somebody awake to hand them on to."""

    def __init__(self, watching: "NumpyWatching") -> None:
        self._watching = watching
        self.on = False
        self._usual: frozenset[str] = frozenset()
        self._validates = False
        self._backwards_usual = 1
        self._inside: set[str] = set()
        self._open = False  # a forward of which it is not known yet what it was for
        self._tentative: list[tuple[int, float]] = []  # as in Notes
        self._parts: list[list[tuple[int, float]]] = []
        self._optimiser: Any = None
        self.rate: float | None = None
        self.training = True

    def begin(self, usual: Mapping[str, int], training: bool, rate: float | None, optimiser: Any) -> None:
        """`usual`: what the last step that was heard in full called."""
        self.on, self.training, self.rate, self._optimiser = True, training, rate, optimiser
        self._usual = frozenset(usual)
        self._validates = any(kind.startswith("validate") for kind in usual)
        self._backwards_usual = max(1, usual.get("backward", 1))
        self._inside.clear()
        self._begin_step()

    def _begin_step(self) -> None:
        self._open, self._tentative, self._parts = False, [], []

    def wake(self) -> None:
        """In the middle of a step. What was heard of it so far is handed over."""
        self.on = False
        self._watching.resume(self._parts, self._tentative, self._open)

    def leave(self) -> None:
        """At the end of a watch. A loop that changes the weights itself has no next forward to end its last step."""
        if self._parts and self._watching.waits_for_change:
            self._ended(None)
        self.on = False

    # The ears. An exception passes through all of them.

    def forward(self, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any], awake: Awake) -> Any:
        watching, backwards = self._watching, len(self._parts)
        if "forward" in self._inside or "backward" in self._inside or ("whole" in self._inside and backwards):
            return function(*args, **options)
        if backwards >= self._backwards_usual and watching.waits_for_change:
            self._ended(None)
            if not self.on:
                return _hand_on(awake, function, args, options)
        elif self._open and not self._validates:
            self.wake()
            return _hand_on(awake, function, args, options)
        self._open, self._tentative = True, []
        return self._through("forward", function, args, options)

    def loss(self, number_of: Callable[[Any], int]) -> Doze:
        """`number_of`: which loss it is, by its object."""

        def heard(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any], awake: Awake) -> Any:
            if "loss" in self._inside:
                return function(*args, **options)
            returned = self._through("loss", function, args, options)
            if self.on:
                self._note(number_of(args[0] if args else None), number_in(returned))
            if type(returned) is tuple and len(returned) > 1 and isinstance(returned[1], Mapping):
                self._went_back()
            return returned

        return heard

    def backward(self, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any], awake: Awake) -> Any:
        if "backward" in self._inside:
            return function(*args, **options)
        returned = self._through("backward", function, args, options)
        self._went_back()
        if self._watching.steps_in_backward and self.on and "whole" not in self._inside:
            self._hear_rate(function, args, options)
            self._ended(returned)
        return returned

    def update(self, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any], awake: Awake) -> Any:
        if "update" in self._inside:
            return function(*args, **options)
        if self._watching.is_asked or (self._optimiser is not None and (not args or args[0] is not self._optimiser)):
            self.wake()
            return _hand_on(awake, function, args, options)
        self._hear_rate(function, args, options)
        returned = self._through("update", function, args, options)
        if self.on and "whole" not in self._inside:
            self._ended(returned)
        return returned

    def whole(self, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any], awake: Awake) -> Any:
        if "whole" in self._inside:
            return function(*args, **options)
        if self._watching.is_asked:
            self.wake()
            return _hand_on(awake, function, args, options)
        self._hear_rate(function, args, options)
        returned = self._through("whole", function, args, options)
        if self.on:
            self._note(OWN, number_in(number_first(returned)))
        if self.on:
            self._ended(returned)
        return returned

    def other(self, kind: str) -> Doze:
        """What is usual says nothing new."""

        def heard(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any], awake: Awake) -> Any:
            if kind in self._usual or any(usual.startswith(kind) for usual in self._usual):
                return function(*args, **options)
            self.wake()
            return _hand_on(awake, function, args, options)

        return heard

    def _through(self, kind: str, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        self._inside.add(kind)
        try:
            return function(*args, **options)
        except BaseException:
            self._watching.fell(kind)
            raise
        finally:
            self._inside.discard(kind)

    def _hear_rate(self, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> None:
        given = argument(function, args, options, "rate")
        if isinstance(given, float | int):
            self.rate = float(given)

    def _note(self, number: int, value: float | None) -> None:
        if value is None or not self.on:
            return
        late = self._parts and not self._parts[-1] and not self._tentative
        (self._parts[-1] if late else self._tentative).append((number, value))
        if value - value != 0.0:  # neither NaN nor infinity is itself taken off itself
            self.wake()

    def _went_back(self) -> None:
        if not self.on:
            return
        self._parts.append(self._tentative)
        self._tentative, self._open = [], False
        if len(self._parts) > 2 * self._backwards_usual:  # the loop has become another one
            self.wake()

    def _ended(self, returned: Any) -> None:
        parts = self._parts or ([self._tentative] if self._tentative else [])
        loss = parts[0][0][1] if len(parts) == 1 and len(parts[0]) == 1 else told(parts)
        self._begin_step()
        self._watching.pass_step(loss, returned)


def _hand_on(awake: Awake, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return awake(args[0] if args else None)(function, args, options)
