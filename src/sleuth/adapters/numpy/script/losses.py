"""Which of the numbers that a script calls a loss is that of its steps."""

import re
from dataclasses import dataclass, field
from typing import Any

from sleuth.adapters.common.manual_loop.notes import number_in
from sleuth.core.runtime.source.sites import Telling

# Of another data set, by the name of the variable or of its function.
VALIDATION = re.compile(r"(^|_)(val|valid|validation|test|dev|eval|evaluation|evaluate)($|_|\d)", re.I)
# Of more than one step.
SUMMARY = re.compile(r"best|total|avg|average|mean|running|epoch|prev|last|min|max|sum|history|log|old|init", re.I)
# A part of the loss.
PART = re.compile(r"reg|data|l2|l1|penalty|decay|softmax|layer|hidden|grad|deriv|delta|prime", re.I)
PLAIN = re.compile(r"^(loss|cost|j|train(ing)?_(loss|cost)|loss_value)$", re.I)
KINDS = {"assigned": 3, "added": 2, "kept": 1, "returned": 0}
# Told in so many of the steps, it is each step's own.
EVERY_STEP = 0.8
# Steps after which the choice stands, where one is told at every step.
SETTLED = 8


@dataclass
class Heard:
    telling: Telling
    steps: int = 0
    last: int = 0  # order within its step


@dataclass
class LossChoice:
    tellings: dict[int, Telling]
    heard: dict[int, Heard] = field(default_factory=dict)
    chosen: int | None = None
    _steps: int = 0
    _settled: bool = False

    def of_step(self, told: list[tuple[int, Any]]) -> float | None:
        """`told`: (number of the statement, value) in their order since the last step; a negative number: before it was added
        to."""
        if not told:
            self._steps += 1
            return None
        if not self._settled:
            self._meet(told)
        self._steps += 1
        chosen = self.chosen
        if chosen is None:
            return None
        value = next((v for n, v in reversed(told) if n == chosen), None)
        found = None if value is None else number_in(value)
        if found is not None and self.tellings[chosen].how == "added":
            return self._added(chosen, found, told)
        return found

    @property
    def is_heard(self) -> bool:
        """At most of the steps."""
        return self.chosen is not None and 2 * self.heard[self.chosen].steps > self._steps

    def of_validation(self, told: list[tuple[int, Any]]) -> float | None:
        found = [v for n, value in told if n >= 0 and _is_validation(self.tellings[n]) and (v := number_in(value)) is not None]
        return found[-1] if found else None

    def of_again(self, told: list[tuple[int, Any]]) -> float | None:
        """Of a step that is done again, or of its part before the first update."""
        value = None if self.chosen is None else next((v for n, v in reversed(told) if n == self.chosen), None)
        found = None if value is None else number_in(value)
        if found is None or self.chosen is None or self.tellings[self.chosen].how != "added":
            return found
        return self._added(self.chosen, found, told)

    def _added(self, chosen: int, value: float, told: list[tuple[int, Any]]) -> float:
        """A sum that was begun in this step is the step's; one that goes on from step to step has grown by it."""
        own = self.tellings[chosen]
        begun = any(n >= 0 and self._is_beginning(self.tellings[n], own) for n, _ in told)
        first = next((number_in(v) or 0.0 for n, v in told if n == ~chosen), 0.0)
        return value if begun else value - first

    @staticmethod
    def _is_beginning(one: Telling, own: Telling) -> bool:
        return one.how == "assigned" and (one.file, one.function, one.name) == (own.file, own.function, own.name)

    def _meet(self, told: list[tuple[int, Any]]) -> None:
        met: dict[int, int] = {}
        for order, (number, value) in enumerate(told):
            if number >= 0 and number_in(value) is not None and not _is_validation(self.tellings[number]):
                met[number] = order
        for number, order in met.items():
            heard = self.heard.setdefault(number, Heard(self.tellings[number]))
            heard.steps += 1
            heard.last = order
        if self.heard:
            self.chosen = max(self.heard, key=self._rank)
            often = self.heard[self.chosen].steps >= EVERY_STEP * max(1, self._steps + 1)
            self._settled = often and self._steps >= SETTLED

    def _rank(self, number: int) -> tuple[bool, bool, bool, int, int, int]:
        heard = self.heard[number]
        name = heard.telling.name
        often = heard.steps >= EVERY_STEP * max(1, self._steps + 1)
        clear = not SUMMARY.search(name) and not PART.search(name)
        return often, clear, bool(PLAIN.search(name)), KINDS[heard.telling.how], heard.last, heard.steps


def _is_validation(telling: Telling) -> bool:
    return bool(VALIDATION.search(telling.name) or VALIDATION.search(telling.function))
