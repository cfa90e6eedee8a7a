"""What is heard beside evaluate(): the loss, the optimiser and the batches of the user's own loop."""

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from sleuth.adapters.common.manual_loop import loop_scope
from sleuth.adapters.common.manual_loop.data_passes import Passes
from sleuth.adapters.common.manual_loop.learning_rate import is_number
from sleuth.adapters.common.manual_loop.loss_and_predictions import judged
from sleuth.adapters.common.manual_loop.patches import Taps
from sleuth.adapters.common.manual_loop.step import number_in
from sleuth.adapters.mithril import arrays

if TYPE_CHECKING:
    from sleuth.adapters.mithril.watching.watching import MithrilWatching


class Around:
    def __init__(self, optimiser: Any, methods: tuple[str, ...], watching: "MithrilWatching") -> None:
        self._optimiser, self._methods, self._watching = optimiser, methods, watching
        self._taps, self._passes = Taps(), Passes()
        self._losses: dict[int, tuple[int, Any]] = {}
        self._looked = False
        self.updates = False  # the optimiser's own update is heard

    @property
    def passes(self) -> int:
        return self._passes.count

    def waited(self) -> dict[str, float]:
        return self._passes.waited()

    def open(self) -> None:
        kind = type(self._optimiser)
        if self._optimiser is not None and not is_number(self._optimiser):
            name = next((n for n in self._methods if inspect.isfunction(getattr(kind, n, None))), None)
            if name is not None:
                owners = {id(self._optimiser): self._optimiser}
                self.updates = self._taps.method(owners, kind, name, lambda _: self._update)
        self._find()

    def look_around(self) -> None:
        """Once more from inside the loop, which may stand in a scope of its own."""
        if not self._looked:
            self._looked = True
            self._find()

    def close(self) -> None:
        self._taps.close()

    def _find(self) -> None:
        for thing in loop_scope.losses(self._optimiser):
            known = len(self._losses)
            if inspect.isfunction(thing):
                self._losses[id(thing)] = known, thing
                self._taps.function(thing, functools.partial(self._loss, known))
                continue
            self._losses.setdefault(id(thing), (known, thing))
            name = next((n for n in ("forward", "__call__") if inspect.isfunction(getattr(type(thing), n, None))), None)
            if name is not None:
                self._taps.method(self._losses, type(thing), name, self._of)
        for loader in loop_scope.loaders(self._optimiser):
            if inspect.isfunction(loader):
                self._taps.function(loader, self._passes.around)
            else:
                self._taps.method({id(loader): loader}, type(loader), "__iter__", lambda _: self._passes.around)

    def _of(self, loss: Any) -> Callable[..., Any]:
        return lambda f, a, o: self._loss(self._losses[id(loss)][0], f, a, o)

    def _loss(self, number: int, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        returned = function(*args, **options)
        self._watching.heard(lambda: self._judge(number, function, args, options, returned))
        return returned

    def _judge(self, number: int, function: Any, args: tuple[Any, ...], options: dict[str, Any], returned: Any) -> None:
        notes = self._watching.notes
        first = returned[0] if isinstance(returned, tuple) and returned else returned
        value = number_in(arrays.values(first) if arrays.is_array(first) else first)
        if value is not None:
            late = notes.losses and not notes.losses[-1] and not notes.tentative
            (notes.losses[-1] if late else notes.tentative).append((number, value))
        if notes.looked and value is not None:
            rest = returned[1] if isinstance(returned, tuple) and len(returned) > 1 else None
            plain = tuple(arrays.values(a) if arrays.is_array(a) else a for a in args)
            name = (
                getattr(args[0], "__name__", type(args[0]).__name__)
                if args and id(args[0]) in self._losses
                else function.__name__
            )
            gradient = arrays.values(rest) if arrays.is_array(rest) else None
            heard = judged(function, name, plain, options, (value, gradient), loop_scope.users_line())
            notes.heard += [] if heard is None else [heard]

    def _update(self, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        watching = self._watching
        given = next((a for a in (*args[2:], *options.values()) if isinstance(a, dict) and _is_gradients(a)), None)
        watching.heard(lambda: watching.about_to_step(given))
        returned = function(*args, **options)
        watching.heard(lambda: watching.stepped(returned))
        return returned


def _is_gradients(tree: dict[str, Any]) -> bool:
    return bool(tree) and all(isinstance(v, np.ndarray) or arrays.is_array(v) for v in tree.values())
