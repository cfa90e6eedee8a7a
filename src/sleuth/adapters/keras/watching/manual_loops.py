"""Loops of one's own around an optimiser of Keras, on the torch backend: noticed when an optimiser is first applied.

Where several optimisers take turns, as in a GAN, a backward of one training reaches the weights of another, and nobody can tell
whose it was: such loops are left alone.
"""

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import keras

from sleuth.adapters.keras.user_lines import made_things
from sleuth.core.contract.adapter import Attended

# Whoever has not stepped while another one took so many steps has come to its end.
SURELY_OVER = 32


class Loops:
    """`begin` opens a watch; `is_followed`: are these variables somebody's who is watched already?"""

    def __init__(self, begin: Callable[[Any, Any], Attended | None], is_followed: Callable[[Sequence[Any]], bool]) -> None:
        self._begin, self._is_followed = begin, is_followed
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()  # optimisers
        self._latest: weakref.ref[Any] | None = None
        self._turn = 0  # steps of the latest in a row
        self._open: list[Attended] = []
        self._is_mixed = False

    @property
    def trouble(self) -> str | None:
        if not self._is_mixed:
            return None
        return "several optimisers of Keras take turns in a loop of its own, and whose gradient is whose cannot be told"

    def applied(self, optimiser: Any, variables: Callable[[], Sequence[Any]]) -> None:
        """It is about to write."""
        if self._is_mixed:
            return
        if self._latest is not None and self._latest() is optimiser:
            self._turn += 1
            if self._turn == SURELY_OVER:
                self._end_earlier()
            return
        self._latest, self._turn = weakref.ref(optimiser), 1
        if optimiser in self._known:
            self._leave_alone()
            return
        self._known.add(optimiser)
        stepped = variables()
        model = None if self._is_followed(stepped) else model_of(stepped)
        attended = None if model is None else self._begin(model, optimiser)
        if attended is not None:
            self._open.append(attended)

    def _leave_alone(self) -> None:
        self._is_mixed = True
        while self._open:
            self._open.pop().drop()

    def _end_earlier(self) -> None:
        earlier, self._open = self._open[:-1], self._open[-1:]
        for attended in earlier:
            attended.end()


def model_of(variables: Sequence[Any]) -> Any:
    """The smallest model that holds them all; of models of one inside the other the outer. None: there is no such model."""
    wanted = {id(v) for v in variables}
    held = [(model, {id(v) for v in model.variables}) for model in made_things(keras.Model)]
    fits = [(len(own), model) for model, own in held if wanted and wanted <= own]
    least = [model for size, model in fits if size == min(size for size, _ in fits)]
    inside = {id(part) for model in least for part in model._flatten_layers(include_self=False)}
    return next((model for model in least if id(model) not in inside), None)
