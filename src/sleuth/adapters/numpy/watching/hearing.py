"""Which of the user's methods and functions tell what, and how a call of each is turned into a note."""

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sleuth.adapters.numpy.anatomy import Parameters, layers
from sleuth.adapters.numpy.calling import positional, role_of, takes
from sleuth.adapters.numpy.forms.functions import ByHand, is_weights
from sleuth.adapters.numpy.forms.layers import Layers, gradient_of
from sleuth.adapters.numpy.gradients import by_name
from sleuth.adapters.numpy.watching.step import number_in
from sleuth.adapters.numpy.watching.taps import Around, Taps, losses
from sleuth.core.tree import leaves

if TYPE_CHECKING:
    from sleuth.adapters.numpy.watching.watching import NumpyWatching

# Method of the model, or of the optimiser → kind of event.
OF_MODEL = {
    "forward": "forward", "backward": "backward", "backprop": "backward", "update": "update", "train_step": "whole",
    "compute_loss": "loss", "forward_loss": "loss", "loss": "loss", "zero_grad": "zero_grad",
}  # fmt: skip
OF_OPTIMISER = {"step": "update", "update": "update", "zero_grad": "zero_grad"}
# Whose beginning, and whose end, says something.
BEGIN = ("forward", "zero_grad", "update", "whole")
END = ("loss", "backward", "update", "whole")
# So many entries of each array are compared to see whether it changed.
PRINTED = 64


class Hearing:
    def __init__(self, model: Any, optimiser: Any, watching: "NumpyWatching") -> None:
        self._model, self._optimiser, self._watching = model, optimiser, watching
        self._parameters = None if isinstance(model, ByHand) else Parameters(model)
        self._tree: Any = model.params if isinstance(model, ByHand) else None  # the weights that the loop last used
        self._weights_at: dict[Any, tuple[int, str]] = {}
        self._depth: dict[str, int] = {}
        self._updates = False  # something is heard that changes the weights
        self._steps_in_backward = self._in_backward()
        self.deaf: list[str] = []

    @property
    def waits_for_change(self) -> bool:
        return not self._updates

    def inside(self, kind: str) -> bool:
        return self._depth.get(kind, 0) > 0

    def install(self, taps: Taps) -> None:
        root = self._model.root if isinstance(self._model, Layers) else self._model
        if isinstance(self._model, ByHand):
            self._functions(taps)
        elif root is not None:
            self._methods(taps, root, OF_MODEL)
        self._layers(taps, root)
        if self._optimiser is not None and hasattr(self._optimiser, "__dict__"):
            self._methods(taps, self._optimiser, OF_OPTIMISER)
        self._losses(taps)

    def _methods(self, taps: Taps, owner: Any, kinds: Mapping[str, str]) -> None:
        for name, kind in kinds.items():
            method, around = getattr(owner, name, None), self._around(kind)
            if callable(method) and taps.method({id(owner): owner}, type(owner), name, always(around)):
                self._updates |= kind in ("update", "whole") or (kind == "backward" and takes(method, "rate"))

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
            self._weights_at[function] = _place_of_weights(function)
            if not taps.function(function, self._around(kind)):
                self.deaf.append(f"{getattr(function, '__name__', kind)}() is not heard: no module refers to it")
            elif kind in ("update", "whole"):
                self._updates = True

    def _layers(self, taps: Taps, root: Any) -> None:
        found = layers(self._model)
        paths = {id(layer): (path, layer) for path, layer in found}
        listed = list(self._model.layers) if isinstance(self._model, Layers) and root is None else []
        for _, layer in found:
            taps.method(paths, type(layer), "forward" if hasattr(layer, "forward") else "__call__", self._layer(paths, listed))
            if listed:
                taps.method({id(listed[0]): listed[0]}, type(layer), "backward", always(self._around("backward")))
                self._updates |= takes(getattr(layer, "backward", takes), "rate")

    def _layer(self, paths: Mapping[int, tuple[str, Any]], listed: list[Any]) -> Callable[[Any], Around]:
        def around(layer: Any) -> Around:
            def heard(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
                watching = self._watching
                if listed and layer is listed[0]:
                    watching.heard("forward", lambda: self._begin("forward"))
                returned = function(*args, **options)
                if watching.notes.looked:
                    watching.heard("layer", lambda: watching.notes.layer(paths[id(layer)][0], layer, returned))
                return returned

            return heard

        return around

    def _losses(self, taps: Taps) -> None:
        for number, thing in enumerate(losses(self._model)):
            around = self._around("loss", number)
            if inspect.isfunction(thing):
                taps.function(thing, around)
            else:
                ways = [n for n in ("forward", "__call__") if inspect.isfunction(getattr(type(thing), n, None))]
                for name in ways[:1]:
                    taps.method({id(thing): thing}, type(thing), name, always(around))

    def _around(self, kind: str, number: int = -1) -> Around:
        def heard(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
            watching = self._watching
            if self.inside(kind):
                return function(*args, **options)
            if begins:
                watching.heard(kind, lambda: self._begin(kind, function, args, options))
            self._depth[kind] = 1
            try:
                returned = function(*args, **options)
            finally:
                self._depth[kind] = 0
            if ends:
                watching.heard(kind, lambda: self._end(kind, number, returned))
            return returned

        begins, ends = kind in BEGIN, kind in END
        return heard

    def _begin(
        self, kind: str, function: Any = None, args: tuple[Any, ...] = (), options: Mapping[str, Any] | None = None
    ) -> None:
        watching = self._watching
        if kind == "forward" and self.waits_for_change and not self.inside("backward"):
            watching.maybe_ended()
        if kind in ("forward", "whole") and self._tree is not None and function is not None:
            self._tree = _given_weights(self._weights_at[function], args, options or {}, self._tree)
        if kind == "update":
            watching.about_to_step()
        if kind == "whole":
            watching.weights_kept()
        if kind in ("forward", "zero_grad"):
            watching.notes.call(kind)

    def _end(self, kind: str, number: int, returned: Any) -> None:
        watching = self._watching
        if (
            kind in ("loss", "whole")
            and (value := number_in(returned if kind == "loss" else _number_first(returned))) is not None
        ):
            watching.notes.losses.append((number, value))
        if kind == "loss" and isinstance(returned, tuple) and len(returned) > 1 and isinstance(returned[1], Mapping):
            watching.notes.call("backward")
            watching.backward_ended(returned[1])
        if kind == "backward":
            watching.notes.call("backward")
            watching.backward_ended(returned)
        changed = kind in ("update", "whole") or (kind == "backward" and self._steps_in_backward)
        if changed and self._tree is not None and returned is not None:
            self._tree = _new_weights(returned, self._tree)
        if changed and not self.inside("whole"):
            watching.step_ended()

    def _in_backward(self) -> bool:
        """Does backward itself change the weights?"""
        root = self._model.root if isinstance(self._model, Layers) else self._model
        steps = [root] if root is not None else list(self._model.layers)
        return any(takes(m, "rate") for m in (getattr(s, "backward", None) for s in steps) if m is not None)

    def weights(self) -> dict[str, np.ndarray]:
        if self._parameters is not None:
            return self._parameters.arrays()
        return dict(leaves(self._tree, lambda a: isinstance(a, np.ndarray)))

    def prints(self) -> list[float]:
        return [v for a in self.weights().values() for v in a.reshape(-1)[:: max(1, a.size // PRINTED)].tolist()]

    def gradients(self, raw: Any) -> dict[str, np.ndarray | None]:
        """Where they can be told; a backward that keeps them to itself gives none."""
        if isinstance(self._model, Layers):
            return {name: gradient_of(layer, key) for name, layer, key in self._model.held()}
        try:
            return by_name(raw, self._parameters or Parameters(self._model), self._model)
        except Exception:
            return {}


def always(around: Around) -> Callable[[Any], Around]:
    return lambda _: around


def _place_of_weights(function: Any) -> tuple[int, str]:
    """At which place, and under which name, a function is given its weights; (-1, "") where it is not."""
    for place, parameter in enumerate(positional(function) or ()):
        if role_of(parameter) == "parameters":
            return place, parameter.name
    return -1, ""


def _given_weights(at: tuple[int, str], args: tuple[Any, ...], options: Mapping[str, Any], known: Any) -> Any:
    place, name = at
    given = args[place] if 0 <= place < len(args) else options.get(name)
    return given if isinstance(given, dict | list | tuple) else known


def _new_weights(returned: Any, known: Any) -> Any:
    candidates = returned if isinstance(returned, tuple) else (returned,)
    return next((c for c in candidates if type(c) is type(known) and is_weights(c) and len(c) == len(known)), known)


def _number_first(returned: Any) -> Any:
    """A training step may return its loss anywhere in a tuple."""
    if not isinstance(returned, tuple):
        return returned
    return next((v for v in returned if number_in(v) is not None), None)
