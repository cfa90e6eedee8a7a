"""The operations of torch beneath a Keras model, each with the Keras layer that it ran in."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sleuth.adapters.keras.hearing import Hearing
from sleuth.adapters.torch.listening import Listener
from sleuth.adapters.torch.origin import OriginNotes
from sleuth.core.observation import Origin


class KerasListener(Listener):
    """Layers are Keras' own: they are no submodules that torch would list."""

    def __init__(self, hearing: Hearing) -> None:
        super().__init__(hearing.model)
        self._stack = hearing.stack

    @contextmanager
    def listening(self) -> Iterator["KerasListener"]:
        with self:
            yield self


class Ops:
    def __init__(self, hearing: Hearing) -> None:
        self.listener = KerasListener(hearing)
        self._origins = OriginNotes(self.listener)

    @contextmanager
    def listening(self) -> Iterator[None]:
        with self.listener.listening():
            yield

    def origin(self, tree: Any, step: int) -> Origin | None:
        return self._origins.origin(tree, step)
