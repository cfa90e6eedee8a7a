"""Updates whose result nobody keeps: the next gradient is taken at the very arrays that they were to replace."""

import weakref
from collections.abc import Callable
from typing import Any

import jax


class Discarded:
    """Of what is trained together, until something of it was kept once. The arrays themselves are not held."""

    def __init__(self) -> None:
        self.times = 0
        self.kept = False
        self._before: list[weakref.ref[Any]] | None = None

    @property
    def always(self) -> bool:
        return self.times > 0 and not self.kept

    def updated(self, before: list[Any]) -> None:
        """Outside of a compiled step."""
        if self.kept:
            return
        # An array of JAX is never written to; anything else may have been changed in place.
        self.kept = not all(isinstance(leaf, jax.Array) for leaf in before)
        self._before = None if self.kept else [weakref.ref(leaf) for leaf in before]

    def taken(self, weights: Callable[[], list[Any] | None]) -> None:
        """A gradient, at these weights."""
        if self._before is None:
            return
        old = {id(leaf) for ref in self._before if (leaf := ref()) is not None}
        now, self._before = weights(), None
        self.kept = now is None or any(id(leaf) not in old for leaf in now)
        self.times += not self.kept
