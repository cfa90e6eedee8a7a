"""Listening to one forward and loss: what each layer and each activation written as a function returned.

Nothing of the user's is wrapped. A profile function sees every Python function return, with its frame and its value.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np

from sleuth.adapters.common.manual_loop.made_values import Made, MadeValues
from sleuth.adapters.numpy.describing import ACTIVATIONS, SOFTMAXES, activation_of, family_of
from sleuth.adapters.numpy.model_parts import layers
from sleuth.core.location import locate
from sleuth.core.runtime.place import is_users
from sleuth.core.runtime.tree import leaves

CALLS = ("forward", "__call__")
BACKWARDS = ("backward", "backprop")
FUNCTIONS = {name.replace("_", ""): name for name in (*ACTIVATIONS, *SOFTMAXES)}


def is_array(thing: Any) -> bool:
    return isinstance(thing, np.ndarray)


class Listener(MadeValues):
    def __init__(self, model: Any) -> None:
        super().__init__([])
        self.model = model
        self._layers = {id(layer): (path, layer) for path, layer in layers(model)}
        self._times: dict[str, int] = {}
        self.outputs: list[Any] = []  # of the model as a whole
        self.passed: list[tuple[str, np.ndarray]] = []  # (layer, the gradient by its output that its backward was given)

    @contextmanager
    def listening(self) -> Iterator["Listener"]:
        """A profiler that is already there rests meanwhile, and is put back on every way out."""
        before = sys.getprofile()
        sys.setprofile(self._event)
        try:
            yield self
        finally:
            sys.setprofile(before)

    def _event(self, frame: FrameType, event: str, value: Any) -> None:
        if event == "call" and frame.f_code.co_name in BACKWARDS:
            self._back(frame)
        if event != "return" or value is None:
            return
        name = frame.f_code.co_name
        if name in CALLS:
            self._layer(frame, value)
        elif (activation := FUNCTIONS.get(name.lower().replace("_", ""))) and is_users(frame.f_code.co_filename):
            self._function(frame, activation, value)

    def _back(self, frame: FrameType) -> None:
        owner, names = _owner(frame), frame.f_code.co_varnames[1 : frame.f_code.co_argcount]
        given = frame.f_locals.get(names[0]) if names else None
        if id(owner) in self._layers and isinstance(given, np.ndarray):
            self.passed.append((self._layers[id(owner)][0], np.array(given)))

    def _layer(self, frame: FrameType, value: Any) -> None:
        owner = _owner(frame)
        if owner is self.model:
            self.outputs.append(value)
        if id(owner) not in self._layers or (frame.f_code.co_name == "__call__" and hasattr(owner, "forward")):
            return
        path, layer = self._layers[id(owner)]
        family = family_of(layer)
        if family == "softmax":
            name = "log_softmax" if "log" in type(layer).__name__.lower() else "softmax"
            self._note(frame, path, family, name, value, _axis(layer.__dict__))
        elif family not in ("container", "loss"):
            self._note(frame, path, family, activation_of(layer), value, None)

    def _function(self, frame: FrameType, activation: str, value: Any) -> None:
        """An activation function, unless it is how an activation layer does its work."""
        inside = self._enclosing(frame.f_back)
        if (inside is not None and activation_of(inside[1]) == activation) or self._is_backward(frame):
            return
        path = ".".join(filter(None, (inside[0] if inside else "", activation)))
        self._times[path] = self._times.get(path, 0) + 1
        path = path if self._times[path] == 1 else f"{path}.{self._times[path]}"
        family = "softmax" if activation in SOFTMAXES else "activation"
        self._note(frame, path, family, activation, value, _axis(frame.f_locals))

    def _enclosing(self, frame: FrameType | None) -> tuple[str, Any] | None:
        while frame is not None and is_users(frame.f_code.co_filename):
            found = self._layers.get(id(_owner(frame)))
            if found is not None:
                return found
            frame = frame.f_back
        return None

    def _is_backward(self, frame: FrameType | None) -> bool:
        while frame is not None and is_users(frame.f_code.co_filename):
            if "backward" in frame.f_code.co_name:
                return True
            frame = frame.f_back
        return False

    def _note(self, frame: FrameType, path: str, family: str, activation: str, value: Any, axis: int | None) -> None:
        array = next((a for _, a in leaves(value, is_array)), None)
        if array is None or array.ndim == 0:
            return
        axis = axis % array.ndim if axis is not None else None
        place = locate(frame.f_code.co_filename, frame.f_lineno)
        self.made.append(Made(path, family, activation, np.array(array), array, axis, place))


def _owner(frame: FrameType) -> Any:
    names = frame.f_code.co_varnames
    return frame.f_locals.get(names[0]) if frame.f_code.co_argcount else None


def _axis(values: dict[str, Any]) -> int | None:
    return next((v for k in ("axis", "dim") if isinstance(v := values.get(k), int) and not isinstance(v, bool)), None)
