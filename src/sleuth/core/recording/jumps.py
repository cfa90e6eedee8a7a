"""Losses that jump up and come back. Long histories are thinned, so each is noted when it happens."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from statistics import median

from sleuth.core.observation import Jump, Step

# Losses that a jump is measured against.
BEFORE = 32
# Times what the highest of those is above their middle.
OUTSTANDING = 3.0
# Steps, and the share of the jump that may be left by then: what takes longer is no jump but something new to learn.
BACK_WITHIN = 8
BACK = 0.1
# Times: a schedule that starts anew throws the loss up by itself.
RAISED = 1.1


@dataclass
class Course:
    """Of one optimiser: what was heard last, and the jump that has not come back yet."""

    losses: deque[float]
    rate: float | None = None
    jump: Jump | None = None


class Jumps:
    def __init__(self) -> None:
        self._courses: dict[int, Course] = {}

    def found(self, steps: Iterable[Step]) -> Iterator[Jump]:
        for step in steps:
            if step.loss is not None:
                yield from self._heard(step, step.loss)

    def _heard(self, step: Step, loss: float) -> Iterator[Jump]:
        course = self._courses.setdefault(step.optimiser, Course(deque(maxlen=BEFORE)))
        jump = course.jump
        if jump is not None:
            jump = course.jump = replace(jump, steps=jump.steps + 1, loss=max(jump.loss, loss))
            if loss < jump.usual + BACK * (jump.loss - jump.usual):
                yield replace(jump, back=True)
                course.jump = None
            elif jump.steps >= BACK_WITHIN:
                yield jump
                course.jump = None
        elif len(course.losses) == BEFORE and loss > (highest := max(course.losses)):
            usual = median(course.losses)
            if loss - usual > OUTSTANDING * (highest - usual):
                raised = course.rate is not None and step.lr is not None and step.lr > RAISED * course.rate
                course.jump = Jump(step.step, loss, usual, highest - usual, optimiser=step.optimiser, raised=raised)
        if course.jump is None:
            course.losses.append(loss)
        course.rate = step.lr
