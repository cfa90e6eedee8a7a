"""Whoever hears a training: what every framework's listener keeps of itself, and how its errors stay with it."""

import functools
import time
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
L = TypeVar("L", bound="Listener")
Lost = Callable[[str, Exception], None]  # a listener's `note_lost`


class Listener:
    """Told of events by a framework's patches (see patches.py). Runs inside the user's training: cheap, leaves numbers and random
    states alone, and an error of its own ends the listening and is said in the report."""

    def __init__(self) -> None:
        self.steps = 0  # taken so far; the number of the step that is going on
        self.looks = 0  # steps that were looked at in full
        self.measured_seconds = 0.0  # of ours, by stopwatch
        self.gave_up: Exception | None = None
        self.remarks: list[str] = []  # what could not be listened to

    @property
    def own_seconds(self) -> float:
        """What listening cost inside the training. A framework whose stopwatch misses a part adds it here."""
        return self.measured_seconds

    def give_up(self, error: Exception) -> None:
        """Something of ours failed: the training goes on without us."""
        self.gave_up = self.gave_up or error

    def note_lost(self, what: str, error: Exception) -> None:
        """An error of ours after which the listening goes on. `what` was lost is said once, however often it happens."""
        if not any(remark.startswith(f"{what}: ") for remark in self.remarks):
            self.remarks.append(f"{what}: {type(error).__name__}: {error}")

    def speak_up(self) -> None:
        """Does what the user asked for when something goes wrong. The only method that may raise into the user's code."""


def contained(method: Callable[Concatenate[L, P], None]) -> Callable[Concatenate[L, P], None]:
    """An error never reaches the user: the listener gives up. The time spent is counted."""

    @functools.wraps(method)
    def call(listener: L, /, *args: P.args, **kwargs: P.kwargs) -> None:
        if listener.gave_up is not None:
            return
        began = time.perf_counter()
        try:
            method(listener, *args, **kwargs)
        except Exception as error:
            listener.give_up(error)
        listener.measured_seconds += time.perf_counter() - began

    return call
