"""Trainings that begin somewhere in the user's script: how many are followed, and when the script has taken enough steps."""

import os
from collections.abc import Callable
from typing import Any

from sleuth.core.contract.adapter import Attended, Discovered, Discovering
from sleuth.core.errors import EnoughSteps

Begin = Callable[[Discovered], Attended]
# Whoever makes a model anew at every step is not followed into each of them.
MOST_TRAININGS = 16


class Discovery(Discovering):
    """Runs inside the user's script: an error of its own ends the discovering and is said; it never reaches the script."""

    def __init__(self, begin: Begin, steps: int | None = None) -> None:
        self.trouble = None
        self.missed = 0
        self._begin, self._most_steps = begin, steps
        self._open: list[Attended] = []
        self._begun = 0  # those that have ended included
        self._steps_before = 0  # of trainings that have ended
        self._process = os.getpid()

    @property
    def is_listening(self) -> bool:
        """A child made by fork has nobody to report to."""
        return self.trouble is None and os.getpid() == self._process

    def give_up(self, error: Exception) -> None:
        self.trouble = self.trouble or f"{type(error).__name__}: {error}"

    @property
    def is_full(self) -> bool:
        return self._begun >= MOST_TRAININGS

    def begin(self, model: Any, optimisers: tuple[Any, ...], name: str) -> Attended | None:
        """Opens a watch; None: there were enough."""
        if self.is_full:
            self.missed += 1
            return None
        self._begun += 1
        attended = self._begin(Discovered(model, optimisers, name))
        self._open.append(attended)
        return attended

    def end(self, attended: Attended) -> None:
        """Another training has taken its place, or its model is gone."""
        self._open.remove(attended)
        self._steps_before += attended.steps
        attended.end()

    def drop(self, attended: Attended) -> None:
        """It only seemed to begin."""
        self._open.remove(attended)
        self._begun -= 1
        attended.drop()

    @property
    def steps(self) -> int:
        return self._steps_before + sum(attended.steps for attended in self._open)

    def leave_when_enough(self) -> None:
        """Raises EnoughSteps into the user's loop: the user asked for a number of steps."""
        if self._most_steps is not None and os.getpid() == self._process and self.steps >= self._most_steps:
            raise EnoughSteps
