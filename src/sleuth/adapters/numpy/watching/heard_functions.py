"""Which of the user's methods and functions are heard, and as what."""

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sleuth.adapters.common.manual_loop import loop_scope
from sleuth.adapters.common.manual_loop.calling import takes
from sleuth.adapters.common.manual_loop.learning_rate import is_number
from sleuth.adapters.common.manual_loop.patches import Around, Doze, Taps
from sleuth.adapters.common.manual_loop.step import OWN
from sleuth.adapters.numpy.forms.functions import ByHand
from sleuth.adapters.numpy.forms.layers import Layers
from sleuth.adapters.numpy.model_parts import layers
from sleuth.adapters.numpy.stepping import CLEARING
from sleuth.adapters.numpy.watching.light_listener import LightListener

if TYPE_CHECKING:
    from sleuth.adapters.numpy.watching.events import Events

# Method of the model, or of the optimiser → kind of event.
OF_MODEL = {
    "forward": "forward", "backward": "backward", "backprop": "backward", "update": "update", "train_step": "whole",
    "compute_loss": "loss", "forward_loss": "loss", "loss": "loss", **dict.fromkeys(CLEARING, "zero_grad"),
}  # fmt: skip
OF_OPTIMISER = {"step": "update", "update": "update", **dict.fromkeys(CLEARING, "zero_grad")}


class Hearing:
    def __init__(self, model: Any, optimiser: Any, events: "Events", dozing: LightListener) -> None:
        self._model, self._optimiser, self._events, self._dozing = model, optimiser, events, dozing
        self._root = model.root if isinstance(model, Layers) else model
        self._losses: dict[int, tuple[int, Any]] = {}  # id of a loss object → (its number, itself)
        self.updates = False  # something is heard that changes the weights
        self.steps_in_backward = self._in_backward()
        self.deaf: list[str] = []

    def install(self, taps: Taps) -> None:
        if isinstance(self._model, ByHand):
            self._functions(taps)
        elif self._root is not None:
            self._methods(taps, self._root, OF_MODEL)
        self._layers(taps)
        if self._optimiser is not None and not is_number(self._optimiser) and hasattr(self._optimiser, "__dict__"):
            self._optimisers(taps)
        self.look_around(taps)

    def look_around(self, taps: Taps) -> None:
        """What the loop itself can reach: again when it calls the model for the first time, from a scope of its own."""
        for thing in loop_scope.losses(self._model):
            if inspect.isfunction(thing):
                number = len(self._losses)
                taps.function(thing, self._around("loss", number), self._dozing.loss(lambda _, number=number: number))  # type: ignore[misc]
                self._losses[id(thing)] = number, thing
                continue
            self._losses.setdefault(id(thing), (len(self._losses), thing))
            ways = [n for n in ("forward", "__call__") if inspect.isfunction(getattr(type(thing), n, None))]
            for name in ways[:1]:
                doze = self._dozing.loss(lambda self_: self._losses[id(self_)][0])
                taps.method(self._losses, type(thing), name, lambda self_: self._around("loss", self._losses[id(self_)][0]), doze)
        for function in loop_scope.clippers(self._model):
            taps.function(function, self._around("clip"), self._dozing.other("clip"))
        for loader in loop_scope.loaders(self._model):
            if inspect.isfunction(loader):
                taps.function(loader, self._events.passes.around)
            else:
                taps.method({id(loader): loader}, type(loader), "__iter__", always(self._events.passes.around))

    def _methods(self, taps: Taps, owner: Any, kinds: Mapping[str, str]) -> None:
        for name, kind in kinds.items():
            method, around = getattr(owner, name, None), always(self._around(kind))
            if callable(method) and taps.method({id(owner): owner}, type(owner), name, around, self._doze(kind)):
                self.updates |= kind in ("update", "whole") or (kind == "backward" and takes(method, "rate"))

    def _optimisers(self, taps: Taps) -> None:
        """Of any object of the class: a loop may make another one on the way."""
        for name, kind in OF_OPTIMISER.items():
            if taps.method(None, type(self._optimiser), name, self._of_optimiser(kind), self._doze(kind)):
                self.updates |= kind == "update"

    def _of_optimiser(self, kind: str) -> Callable[[Any], Around]:
        def around(optimiser: Any) -> Around:
            return self._around(kind, of=optimiser) if self._events.knows(optimiser) else _unheard

        return around

    def _functions(self, taps: Taps) -> None:
        model = self._model
        for kind, function in (
            ("forward", model._forward),
            ("backward", model.backward),
            ("update", model._update),
            ("whole", model.written),
        ):
            if function is None:
                continue
            if not taps.function(function, self._around(kind), self._doze(kind)):
                self.deaf.append(f"{getattr(function, '__name__', kind)}() is not heard: no module refers to it")
            elif kind in ("update", "whole"):
                self.updates = True

    def _layers(self, taps: Taps) -> None:
        found = layers(self._model)
        paths = {id(layer): (path, layer) for path, layer in found}
        listed = list(self._model.layers) if isinstance(self._model, Layers) and self._root is None else []
        for _, layer in found:
            name = "forward" if hasattr(layer, "forward") else "__call__"
            taps.method(paths, type(layer), name, self._layer(paths, listed), self._doze_at(listed[0]) if listed else None)
            if listed:
                first, around = {id(listed[0]): listed[0]}, always(self._around("backward"))
                taps.method(first, type(layer), "backward", around, self._dozing.backward)
                self.updates |= takes(getattr(layer, "backward", takes), "rate")

    def _layer(self, paths: Mapping[int, tuple[str, Any]], listed: list[Any]) -> Callable[[Any], Around]:
        def around(layer: Any) -> Around:
            def heard(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
                if listed and layer is listed[0]:
                    self._events.begin("forward", function, args, options)
                returned = function(*args, **options)
                self._events.layer(paths[id(layer)][0], layer, returned)
                return returned

            return heard

        return around

    def _doze(self, kind: str) -> Doze:
        dozing = self._dozing
        known = {"forward": dozing.forward, "backward": dozing.backward, "update": dozing.update, "whole": dozing.whole}
        return dozing.loss(lambda _: OWN) if kind == "loss" else known[kind] if kind in known else dozing.other(kind)

    def _doze_at(self, first: Any) -> Doze:
        """Of a list of layers the first one tells that a forward begins."""

        def heard(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any], awake: Any) -> Any:
            return self._dozing.forward(function, args, options, awake) if args[0] is first else function(*args, **options)

        return heard

    def _around(self, kind: str, number: int = -1, of: Any = None) -> Around:
        events = self._events

        def heard(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
            if events.inside(kind):
                return function(*args, **options)
            events.begin(kind, function, args, options, of)
            events.enter(kind)
            try:
                returned = function(*args, **options)
            except BaseException:
                events.fell = events.fell or kind
                raise
            finally:
                events.leave(kind)
            events.fell = None
            events.end(kind, number, function, args, options, returned)
            return returned

        return heard

    def _in_backward(self) -> bool:
        """Does backward itself change the weights?"""
        steps = [self._root] if self._root is not None else list(self._model.layers)
        return any(takes(m, "rate") for m in (getattr(s, "backward", None) for s in steps) if m is not None)


def _unheard(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return function(*args, **options)


def always(around: Around) -> Callable[[Any], Around]:
    return lambda _: around
