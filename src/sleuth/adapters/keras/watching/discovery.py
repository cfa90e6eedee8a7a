"""Trainings are noticed from outside: Keras makes the function that takes their steps, or a loop applies an optimiser itself."""

import functools
import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import keras
from keras.src.optimizers.base_optimizer import BaseOptimizer

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.patches import Function, replaced
from sleuth.adapters.keras.user_lines import LINE_LOST, made_things, noted
from sleuth.adapters.listening.discovery import Begin, Discovery
from sleuth.adapters.listening.patches import attempt
from sleuth.core.contract.adapter import Attended

# Whoever has not stepped while another one took so many steps has come to its end.
SURELY_OVER = 32
MIXED = "several optimisers of Keras take turns in a loop of its own, and whose gradient is whose cannot be told"
COUNTS = "__sleuth_counts__"


class KerasDiscovery(Discovery):
    def __init__(self, begin: Begin, steps: int | None = None) -> None:
        super().__init__(begin, steps)
        self._followed: weakref.WeakKeyDictionary[Any, Attended] = weakref.WeakKeyDictionary()
        self._loops = ManualLoops(self)
        self._patches = ExitStack()
        self._is_over = False

    def open(self, *, found_already: bool = False) -> None:
        attempt(self.give_up, self._open_patches)

    def _open_patches(self) -> None:
        self._patches.enter_context(noted(self._lose_line))
        self._patches.enter_context(replaced(keras.Model, "make_train_function", self._making))
        if backend.name() == "torch":
            self._patches.enter_context(replaced(BaseOptimizer, "apply", self._applying))

    def close(self) -> None:
        self._is_over = True  # somebody may have wrapped our function meanwhile, and call it still
        attempt(self.give_up, self._patches.close)
        self._followed.clear()
        self.trouble = self.trouble or (MIXED if self._loops.is_mixed else None)

    def _lose_line(self, error: Exception) -> None:
        self.remarks = self.remarks or (f"{LINE_LOST}: {type(error).__name__}: {error}",)

    @property
    def _listens(self) -> bool:
        return not self._is_over and self.is_listening and backend.name() in backend.KNOWN

    def _making(self, plain: Function) -> Function:
        def make_train_function(model: Any, *args: Any, **kwargs: Any) -> Any:
            made = plain(model, *args, **kwargs)
            attempt(self.give_up, self._meet, model)
            return made

        return make_train_function

    def _meet(self, model: Any) -> None:
        if not self._listens or (model not in self._followed and self.follow(model, model.optimizer) is None):
            return
        if self._most_steps is not None and not getattr(model.train_function, COUNTS, False):
            model.train_function = self._counting(model.train_function)

    def leave_when_enough(self) -> None:
        if not self._is_over:
            super().leave_when_enough()

    def follow(self, model: Any, optimiser: Any) -> Attended | None:
        _leave_to_us()
        attended = self.begin(model, (optimiser,), model.name)
        if attended is not None:
            self._followed[model] = attended
        return attended

    def is_followed(self, variables: Sequence[Any]) -> bool:
        wanted = {id(v) for v in variables}
        return any(not wanted.isdisjoint(id(v) for v in model.variables) for model in list(self._followed))

    def _applying(self, plain: Function) -> Function:
        import torch

        is_inside = False  # optimisers that scale the loss call another one

        def apply(optimiser: Any, grads: Any, trainable_variables: Any = None) -> Any:
            nonlocal is_inside
            if is_inside or torch.compiler.is_compiling():
                return plain(optimiser, grads, trainable_variables)
            given = None if trainable_variables is None else list(trainable_variables)
            attempt(self.give_up, self._applied, optimiser, given)
            self.leave_when_enough()
            is_inside = True
            try:
                return plain(optimiser, grads, given)
            finally:
                is_inside = False

        return apply

    def _applied(self, optimiser: Any, given: list[Any] | None) -> None:
        if self._listens:
            self._loops.applied(optimiser, lambda: optimiser._trainable_variables if given is None else given)

    def _counting(self, plain: Function) -> Function:
        @functools.wraps(plain)
        def train(*args: Any) -> Any:
            result = plain(*args)
            self.leave_when_enough()
            return result

        train.__dict__[COUNTS] = True
        return train


class ManualLoops:
    """Loops of one's own around an optimiser of Keras, on the torch backend: noticed when an optimiser is first applied.

    Where several optimisers take turns, as in a GAN, a backward of one training reaches the weights of another, and nobody can
    tell whose it was: such loops are left alone."""

    def __init__(self, discovery: KerasDiscovery) -> None:
        self._discovery = discovery
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()  # optimisers
        self._latest: weakref.ref[Any] | None = None
        self._turn = 0  # steps of the latest in a row
        self._open: list[Attended] = []
        self.is_mixed = False

    def applied(self, optimiser: Any, variables: Callable[[], Sequence[Any]]) -> None:
        """It is about to write."""
        if self.is_mixed:
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
        model = None if self._discovery.is_followed(stepped) else _model_of(stepped)
        attended = None if model is None else self._discovery.follow(model, optimiser)
        if attended is not None:
            self._open.append(attended)

    def _leave_alone(self) -> None:
        self.is_mixed = True
        while self._open:
            self._discovery.drop(self._open.pop())

    def _end_earlier(self) -> None:
        earlier, self._open = self._open[:-1], self._open[-1:]
        for attended in earlier:
            self._discovery.end(attended)


def _model_of(variables: Sequence[Any]) -> Any:
    """The smallest model that holds them all; of models of one inside the other the outer. None: there is no such model."""
    wanted = {id(v) for v in variables}
    held = [(model, {id(v) for v in model.variables}) for model in made_things(keras.Model)]
    fits = [(len(own), model) for model, own in held if wanted and wanted <= own]
    least = [model for size, model in fits if size == min(size for size, _ in fits)]
    inside = {id(part) for model in least for part in model._flatten_layers(include_self=False)}
    return next((model for model in least if id(model) not in inside), None)


def _leave_to_us() -> None:
    """On the torch backend Keras' optimisers write weights as somebody would by hand: torch's own discovery need not wonder."""
    if backend.name() != "torch":
        return
    from sleuth.adapters.torch.watching import discovery, patches

    for listener in patches.LISTENERS:
        if isinstance(listener, discovery.Discovery):
            listener.forget_manual_updates()
