"""Losses and loaders that a loop can reach by their names, patched where they are found."""

import inspect
from collections.abc import Callable
from typing import Any

from sleuth.adapters.common.manual_loop import loop_scope
from sleuth.adapters.common.manual_loop.data_passes import DataPasses
from sleuth.adapters.common.manual_loop.patches import Handlers, Patches


class LoopFunctions:
    """`loss_handlers`: for a loss of this number. `near`: an object whose module is looked into as well."""

    def __init__(self, patches: Patches, near: Any, passes: DataPasses, loss_handlers: Callable[[int], Handlers]) -> None:
        self._patches, self._near, self._loss_handlers = patches, near, loss_handlers
        self._passes = Handlers(passes, passes)
        self._losses: dict[int, tuple[Any, Handlers]] = {}  # by id of the function or object, which is kept alive
        self._looked_from_inside = False

    def look_from_inside(self) -> None:
        """The loop stands in a scope of its own, which may not have been running when the watch was opened."""
        if not self._looked_from_inside:
            self._looked_from_inside = True
            self.look_around()

    def look_around(self) -> None:
        for thing in loop_scope.losses(self._near):
            self._loss(thing)
        for loader in loop_scope.loaders(self._near):
            if inspect.isfunction(loader):
                self._patches.function(loader, self._passes)
            else:
                self._patches.method(type(loader), "__iter__", lambda it, loader=loader: self._passes if it is loader else None)  # type: ignore[misc]

    def _loss(self, thing: Any) -> None:
        handlers = self._loss_handlers(len(self._losses))
        if inspect.isfunction(thing):
            self._losses[id(thing)] = thing, handlers
            self._patches.function(thing, handlers)
            return
        self._losses.setdefault(id(thing), (thing, handlers))
        name = next((n for n in ("forward", "__call__") if inspect.isfunction(getattr(type(thing), n, None))), None)
        if name is not None:
            self._patches.method(type(thing), name, self._of_object)

    def _of_object(self, thing: Any) -> Handlers | None:
        found = self._losses.get(id(thing))
        return None if found is None else found[1]
