"""Whether a step uses a gradient that an earlier step has used already.

That, and not a backward onto a gradient that is still there, is what a forgotten zero_grad looks like: accumulation and
GANs do the latter on purpose. A few parameters speak for all, the smallest ones: their values must be read when nobody
set them to None.
"""

from collections.abc import Iterable

import torch

SPOKESMEN = 3

EMPTY, FRESH, CONSUMED, POLLUTED = range(4)


class GradientStates:
    """Of one optimiser. Parameters are known by their position; nothing is kept on the user's tensors."""

    def __init__(self, parameters: Iterable[torch.Tensor]) -> None:
        self._candidates = [p for p in parameters if p.requires_grad]
        self._watched: list[torch.Tensor] = []
        self._states: list[int] = []
        self._marks: list[tuple[int, int] | None] = []
        # The first and the last one tell whether a backward came by here at all: every loss of a model reaches one of them.
        self._ends = self._candidates[:1] + self._candidates[-1:]
        self._end_marks = [_mark(p.grad) for p in self._ends]
        self.backwards = 0  # since the last step

    def before_backward(self) -> None:
        self._look_for_clearing()
        self._end_marks = [_mark(p.grad) for p in self._ends]

    def after_backward(self) -> bool:
        """Did the backward reach these parameters?"""
        if not self._watched:
            self._choose()
        reached = self._end_marks != [_mark(p.grad) for p in self._ends]
        for i, parameter in enumerate(self._watched):
            mark = _mark(parameter.grad)
            if mark is None or mark == self._marks[i]:
                continue
            self._states[i] = POLLUTED if self._states[i] in (CONSUMED, POLLUTED) else FRESH
            self._marks[i] = mark
            reached = True
        self.backwards += reached
        return reached

    def step(self) -> str:
        """What kind of step this is; see Step.calls."""
        if not self._watched:
            self.backwards, before = 0, self.backwards
            return "step" if before else "step-without-gradient"
        self._look_for_clearing()
        states, backwards = set(self._states), self.backwards
        self.backwards = 0
        for i, state in enumerate(self._states):
            if state != EMPTY:
                self._states[i] = CONSUMED
        if POLLUTED in states:
            return "step-on-used-gradient"
        if FRESH in states:
            return "step"
        if CONSUMED in states:
            return "step-on-same-gradient"
        return "step-on-erased-gradient" if backwards else "step-without-gradient"

    def _choose(self) -> None:
        with_gradient = [p for p in self._candidates if p.grad is not None]
        self._watched = sorted(with_gradient, key=lambda p: p.numel())[:SPOKESMEN]
        self._states = [EMPTY] * len(self._watched)
        self._marks = [None] * len(self._watched)

    def _look_for_clearing(self) -> None:
        for i, parameter in enumerate(self._watched):
            gradient = parameter.grad
            if gradient is None:
                self._states[i], self._marks[i] = EMPTY, None
                continue
            mark = _mark(gradient)
            # `grad.data.zero_()` leaves no mark, so a used gradient's values are read; a fresh one's only when it was touched.
            used = self._states[i] in (CONSUMED, POLLUTED)
            if (used or mark != self._marks[i]) and not gradient.any():
                self._states[i] = EMPTY
            self._marks[i] = mark


def _mark(gradient: torch.Tensor | None) -> tuple[int, int] | None:
    return None if gradient is None else (id(gradient), gradient._version)
