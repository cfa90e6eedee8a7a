"""Gradients that a step has used: are they still there when the next backward comes? A loop may clear them in many ways."""

from collections.abc import Sequence
from typing import Any


class Leftovers:
    def __init__(self) -> None:
        # Variable, where its gradient lies, how often that was written.
        self._used: list[tuple[Any, int, int]] = []

    def note(self, variables: Sequence[Any]) -> None:
        """A step was taken just now."""
        self._used = [(v, g.data_ptr(), g._version) for v in variables if (g := v.value.grad) is not None]

    @property
    def are_there(self) -> bool:
        return any(_is(variable.value.grad, place, version) for variable, place, version in self._used)


def _is(gradient: Any, place: int, version: int) -> bool:
    return gradient is not None and gradient.data_ptr() == place and gradient._version == version


def has_values(gradients: Sequence[Any]) -> bool:
    return any(gradient is not None and bool(gradient.any()) for gradient in gradients)
