"""Layers as objects, in a list or in an object that does not say which arrays are its weights."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from sleuth.adapters.common.manual_loop.calling import Offers, call, given, takes
from sleuth.adapters.common.manual_loop.loop_scope import CLOSED
from sleuth.adapters.numpy.forms.differences import by_difference
from sleuth.adapters.numpy.forms.names import by_marked_name
from sleuth.adapters.numpy.model_parts import is_weight, layers
from sleuth.core.errors import Unsupported


class Layers:
    """`root` is a list of layers, or the user's network; the weights are what its layers hold."""

    def __init__(self, root: Any) -> None:
        self.layers = root
        self.root = None if isinstance(root, list | tuple) else root
        self.names = tuple(name for name, _, _ in self.held())

    def forward(self, x: Any) -> Any:
        if self.root is not None:
            return call(_method(self.root, "forward", "predict"), {"inputs": lambda: x}, ("inputs",))
        for layer in self.layers:
            x = call(_way_in(layer), {"inputs": given(x)}, ("inputs",))
        return x

    def parameters(self) -> list[tuple[str, np.ndarray]]:
        return [(name, getattr(layer, key)) for name, layer, key in self.held()]

    def backward(self, grad: Any) -> dict[str, np.ndarray]:
        return self.gradients_from({"gradient": given(grad)})

    def gradients_from(self, offers: Offers) -> dict[str, np.ndarray]:
        """By the names of the weights. A backward that changes them itself is asked what it would have changed."""
        if any(takes(step, "rate") for step in self._backwards()):
            return by_difference(lambda rate: self._moved(offers, rate))
        returned = self._go_back(offers, 1.0)
        told = by_marked_name(returned, list(self.names)) if self.root is not None else {}
        return told or {name: gradient_of(layer, key) for name, layer, key in self.held()}

    def _moved(self, offers: Offers, rate: float) -> dict[str, np.ndarray]:
        before = [(layer, key, getattr(layer, key), getattr(layer, key).copy()) for _, layer, key in self.held()]
        try:
            self._go_back(offers, rate)
            return {
                name: values - getattr(layer, key)
                for (name, layer, key), (_, _, _, values) in zip(self.held(), before, strict=True)
            }
        finally:
            for layer, key, array, values in before:
                array[...] = values
                setattr(layer, key, array)

    def _go_back(self, offers: Offers, rate: float) -> Any:
        """What the last of them returned."""
        offers, returned = {**offers, "rate": given(rate)}, None
        for step in self._backwards():
            returned = call(step, offers, ("gradient",))
            offers = {**offers, "gradient": given(returned)}
        return returned

    def _backwards(self) -> list[Callable[..., Any]]:
        if self.root is not None:
            return [_method(self.root, "backward", "backprop")]
        return [_method(layer, "backward", "backprop") for layer in reversed(self.layers)]

    @property
    def update(self) -> Callable[..., Any] | None:
        """The layers' own update(lr), where those with weights have one."""
        methods = [getattr(owner, "update", None) for owner in self._owners()]
        return self._updated if methods and all(map(callable, methods)) else None

    def _updated(self, grads: Any, lr: float) -> None:
        for owner in self._owners():
            call(owner.update, {"rate": given(lr), "gradients": given(grads)}, ("rate",))

    def _owners(self) -> list[Any]:
        """Those whose update is called."""
        if self.root is not None and hasattr(self.root, "update"):
            return [self.root]
        return list({id(layer): layer for _, layer, _ in self.held()}.values())

    def held(self) -> Iterator[tuple[str, Any, str]]:
        """(name, layer, attribute) of every array that is a weight, once."""
        seen: set[int] = set()
        found = layers(self)
        for path, layer in [*found, *([("", self.root)] if self.root is not None else [])]:
            for key, value in getattr(layer, "__dict__", {}).items():
                if is_weight(key, value) and id(value) not in seen:
                    seen.add(id(value))
                    yield ".".join(filter(None, (path.removeprefix("layers."), key))), layer, key


def is_layered(thing: Any) -> bool:
    """A list of several layers that can go back, or an object with layers that does not name its parameters."""
    if isinstance(thing, list | tuple):
        return len(thing) > 1 and all(_is_layer(t) for t in thing) and any(_can_go_back(t) for t in thing)
    if isinstance(thing, (*CLOSED, dict)) or hasattr(thing, "parameters"):
        return False
    return callable(getattr(thing, "forward", None)) and _can_go_back(thing) and bool(Layers(thing).names)


def _is_layer(thing: Any) -> bool:
    return not isinstance(thing, CLOSED) and (callable(getattr(thing, "forward", None)) or callable(thing))


def _can_go_back(thing: Any) -> bool:
    return any(callable(getattr(thing, name, None)) for name in ("backward", "backprop"))


def _way_in(layer: Any) -> Callable[..., Any]:
    return layer.forward if callable(getattr(layer, "forward", None)) else layer


def _method(thing: Any, *names: str) -> Callable[..., Any]:
    found = next((m for name in names if callable(m := getattr(thing, name, None))), None)
    if found is None:
        raise Unsupported(f"{type(thing).__name__} has no {names[0]}()")
    return found


def gradient_of(layer: Any, key: str) -> Any:
    marks = (
        f"d{key}",
        f"d_{key}",
        f"grad_{key}",
        f"{key}_grad",
        f"{key}_gradient",
        f"g{key}",
        f"grad{key}",
        f"{key}_g",
        f"dL_d{key}",
    )
    for mark in marks:
        if isinstance(value := getattr(layer, mark, None), np.ndarray):
            return value
    for store in (getattr(layer, name, None) for name in ("grads", "gradients", "grad")):
        if isinstance(store, dict):
            return next((store[mark] for mark in (key, *marks) if mark in store), None)
    return None
