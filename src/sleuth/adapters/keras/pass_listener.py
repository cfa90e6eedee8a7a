"""Listening to one forward pass and loss: what each layer, each activation and each loss was given and gave.

Keras' own entry points are replaced for the time: `Layer.__call__`, the functions of the backend that activations come down to,
and `Loss.__call__`. The same ones serve every backend.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import FrameType
from typing import Any

import keras
import numpy as np
from keras.src import backend as keras_backend
from keras.src.backend.common.symbolic_scope import in_symbolic_scope

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.families import ACTIVATIONS, RESHAPING, SOFTMAXES, family_of, fused
from sleuth.adapters.keras.model_parts import inner, layers
from sleuth.adapters.keras.patches import replaced, reraise
from sleuth.adapters.keras.user_lines import line_now, made_at
from sleuth.adapters.listening.patches import attempt, carries_call
from sleuth.core.location import Location
from sleuth.core.runtime.tree import leaves, map_arrays

# They call themselves for every step of time: what goes on inside is theirs.
CLOSED = ("recurrent", "attention")
ENTROPIES = ("categorical_crossentropy", "sparse_categorical_crossentropy", "binary_crossentropy")


@dataclass(frozen=True)
class Made:
    """What a layer or a function put out. `array` is kept: it is known again by being the same object."""

    path: str
    family: str
    activation: str
    values: np.ndarray
    array: Any
    given: tuple[Any, ...]
    operation: str
    axis: int | None = None
    unit_axis: int = -1
    location: Location | None = None


@dataclass(frozen=True)
class HeardLoss:
    loss: Any  # a Loss, or the name of the backend's function
    truth: Any
    output: Any
    returned: Any  # None: it raised
    options: dict[str, Any]
    location: Location | None


@dataclass(frozen=True)
class Heard:
    """All of it, such that other arrays can be put in the place of those that were met."""

    made: tuple[Made, ...]
    makers: tuple[tuple[Any, Made], ...]  # an array, and what made it
    outputs: tuple[Any, ...]
    losses: tuple[HeardLoss, ...]

    def mapped(self, change: Callable[[Any], Any]) -> "Heard":
        def one(made: Made) -> Made:
            array = change(made.array)
            return replace(made, array=array, values=array, given=tuple(change(a) for a in made.given))

        def tree(thing: Any) -> Any:
            return map_arrays(thing, change, lambda leaf: backend.is_array(leaf) or change(leaf) is not leaf)

        losses = [replace(h, truth=tree(h.truth), output=tree(h.output), returned=tree(h.returned)) for h in self.losses]
        makers = tuple((change(array), one(made)) for array, made in self.makers)
        return Heard(tuple(map(one, self.made)), makers, tuple(map(tree, self.outputs)), tuple(losses))


class Hearing:
    def __init__(
        self,
        model: Any,
        keep: Callable[[Any], np.ndarray] = lambda array: np.array(backend.values(array)),
        listens: Callable[[], bool] = lambda: True,
        failed: Callable[[Exception], None] = reraise,
    ) -> None:
        self.model = model
        self._failed = failed  # is given errors of ours: in the user's training they must not come out
        self._keep = keep  # how values are kept: a copy, since the next step may write over them
        self._listens = listens  # to what goes on now?
        self._layers = {id(layer): (path, layer) for path, layer in layers(model)}
        self._by_path = dict(self._layers.values())
        self.stack: list[str] = []
        self.made: list[Made] = []
        self.outputs: list[Any] = []  # of the model as a whole
        self.losses: list[HeardLoss] = []
        self.failed_in: str | None = None  # the innermost layer that an exception left
        self.on_layer: list[Callable[[str, Any, tuple[Any, ...], Any], None]] = []
        self._last: dict[str, Made] = {}  # by layer: its activation, of the present call
        self._makers: dict[int, Made] = {}
        self._alive: list[Any] = []  # an id is not given twice while the array lives
        self._in_loss = 0
        self._root: FrameType | None = None  # while the model is called: what stands above it does not compute
        self._channels_first = keras.config.image_data_format() == "channels_first"

    @contextmanager
    def listening(self, *, to_layers: bool = True) -> Iterator["Hearing"]:
        """`to_layers`: else somebody hands their calls to `carry`."""
        functions = [(keras_backend.nn, name) for name in (*ACTIVATIONS, *SOFTMAXES) if hasattr(keras_backend.nn, name)]
        functions.append((keras_backend.numpy, "tanh"))
        with ExitStack() as stack:
            if to_layers:
                stack.enter_context(replaced(keras.layers.Layer, "__call__", self._layer))
            stack.enter_context(replaced(keras.losses.Loss, "__call__", self._loss))
            for owner, name in functions:
                stack.enter_context(replaced(owner, name, partial(self._function, name=name)))
            for name in ENTROPIES:
                stack.enter_context(replaced(keras_backend.nn, name, partial(self._entropy, name=name)))
            yield self

    @property
    def heard(self) -> Heard:
        alive = {id(a): a for made in (*self.made, *self._makers.values()) for a in (made.array, *made.given)}
        alive |= {id(a): a for a in self._alive}
        makers = tuple((alive[key], made) for key, made in self._makers.items() if key in alive)
        return Heard(tuple(self.made), makers, tuple(self.outputs), tuple(self.losses))

    def take(self, heard: Heard) -> None:
        """What was heard elsewhere."""
        self.made = [replace(made, values=self._keep(made.array)) for made in heard.made]
        self.outputs, self.losses = list(heard.outputs), list(heard.losses)
        self._alive = [array for array, _ in heard.makers]
        self._makers = {id(array): replace(made, values=self._keep(made.array)) for array, made in heard.makers}

    @property
    def phase(self) -> str:
        return "loss" if self.outputs and not self.stack else "forward"

    @property
    def layer(self) -> str:
        return self.stack[-1] if self.stack else ""

    def _layer(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def call(layer: Any, *args: Any, **kwargs: Any) -> Any:
            return self.carry(plain, layer, args, kwargs)

        return call

    @carries_call
    def carry(self, plain: Callable[..., Any], layer: Any, args: Any, kwargs: Any) -> Any:
        """Hears one call of a layer's."""
        path = attempt(self._failed, self._entered, layer)
        if path is None:
            return plain(layer, *args, **kwargs)
        try:
            output = plain(layer, *args, **kwargs)
        except BaseException as error:
            attempt(self._failed, self._raised, path, layer, error)
            raise
        attempt(self._failed, self._left, path, layer, args, kwargs, output)
        return output

    def _entered(self, layer: Any) -> str | None:
        """The path of a layer that is about to run; None: it is not listened to."""
        path, _ = self._layers.get(id(layer), ("", None))
        if (not path and layer is not self.model) or in_symbolic_scope() or not self._listens():
            return None
        self._last.pop(path, None)
        self._root = sys._getframe(2) if layer is self.model else self._root
        self.stack.append(path)
        return path

    def _raised(self, path: str, layer: Any, error: BaseException) -> None:
        self._go_out(layer)
        if isinstance(error, Exception):
            self.failed_in = self.failed_in or path

    def _go_out(self, layer: Any) -> None:
        self.stack.pop()
        self._root = None if layer is self.model else self._root

    def _left(self, path: str, layer: Any, args: Any, kwargs: Any, output: Any) -> None:
        self._go_out(layer)
        given = tuple(a for _, a in leaves((args, kwargs), backend.is_array))
        array = next((a for _, a in leaves(output, backend.is_tensor)), None)
        if array is None or _is_empty(array):
            return
        for listen in self.on_layer:
            listen(path, layer, given, output)
        if layer is self.model:
            self.outputs.append(output)
        elif (not inner(layer) or family_of(layer) in CLOSED) and not self._is_closed(path):
            self._note_layer(path, layer, given, array)

    def _is_closed(self, path: str) -> bool:
        return any(family_of(layer) in CLOSED for above, layer in self._layers.values() if path.startswith(f"{above}."))

    def _note_layer(self, path: str, layer: Any, given: tuple[Any, ...], array: Any) -> None:
        family = family_of(layer)
        if hasattr(layer, "data_format") and family in ("conv", "pool"):
            self._channels_first = layer.data_format == "channels_first"
        if path in self._last:  # its activation was heard: what came before that is the layer's own
            if family != "other" or self._last[path].array is array:
                return
            # In a layer of the user's own the activation is somewhere on the way: what it gives is its own.
            noted = max((n for n, made in enumerate(self.made) if made.path == path), default=None)
            self.made = self.made if noted is None else [*self.made[:noted], *self.made[noted + 1 :]]
        if isinstance(layer, RESHAPING) and given and id(given[0]) in self._makers:
            self._makers[id(array)] = self._makers[id(given[0])]  # values that were only moved keep their maker
            self._keep_alive(array)
            return
        word = fused(layer) if family in ("activation", "softmax") else ""
        self._add(path, family, word, array, given, word or family, getattr(layer, "axis", None))

    def _function(self, plain: Callable[..., Any], name: str) -> Callable[..., Any]:
        word = ACTIVATIONS.get(name, name)

        def function(x: Any, *args: Any, **kwargs: Any) -> Any:
            output = plain(x, *args, **kwargs)
            if self.stack and not self._in_loss:
                attempt(self._failed, self._note_function, word, x, output, kwargs.get("axis", args[0] if args else None))
            return output

        return function

    def _note_function(self, word: str, x: Any, output: Any, axis: Any) -> None:
        if not backend.is_tensor(output) or _is_empty(output):
            return
        path = self.layer
        layer = next((layer for p, layer in self._layers.values() if p == path), self.model)
        family = family_of(layer) if layer is not self.model else "container"
        if family in CLOSED or self._is_closed(path):
            return
        if family in ("activation", "softmax"):
            if word in SOFTMAXES or not fused(layer):
                self._makers[id(output)] = self._made(path, "softmax", word, output, (x,), word, axis)
                self._keep_alive(output)
            return
        own = fused(layer) or (family == "other" and layer.weights)
        if own and path and path not in self._last:
            self._add(path, family, "", x, (), family)
        kind = "softmax" if word in SOFTMAXES else "activation"
        self._add(f"{path}.{word}" if path else word, kind, word, output, (x,), word, axis)
        self._last[path] = self.made[-1]

    def _add(self, path: str, family: str, word: str, array: Any, given: Any, operation: str, axis: Any = None) -> None:
        made = self._made(path, family, word, array, given, operation, axis)
        self.made.append(made)
        self._makers.setdefault(id(array), made) if word == "" else self._makers.update({id(array): made})

    def _made(self, path: str, family: str, word: str, array: Any, given: Any, operation: str, axis: Any) -> Made:
        dims = len(array.shape)
        number = axis % dims if isinstance(axis, int) and dims else dims - 1 if operation in SOFTMAXES else None
        units = 1 if self._channels_first and dims >= 4 else dims - 1
        return Made(path, family, word, self._keep(array), array, tuple(given), operation, number, units, self._line(path))

    def _line(self, path: str) -> Location | None:
        """Of a layer, or of a function that runs in it."""
        layer = self._by_path.get(path) or self._by_path.get(path.rpartition(".")[0], self.model)
        return self.line_of(layer)

    def line_of(self, layer: Any) -> Location | None:
        """What a layer of Keras' own does was settled where it was made; what a `call` of the user's does stands there."""
        if type(layer).__module__.startswith("keras."):
            return made_at(layer) or line_now(self._root)
        return line_now(self._root) or made_at(layer)

    def _keep_alive(self, array: Any) -> None:
        self._alive.append(array)

    def maker(self, array: Any) -> Made | None:
        return self._makers.get(id(array))

    def _loss(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def call(loss: Any, y_true: Any, y_pred: Any, *args: Any, **kwargs: Any) -> Any:
            if not attempt(self._failed, self._listens):
                return plain(loss, y_true, y_pred, *args, **kwargs)
            self._in_loss += 1
            returned = None
            try:
                returned = plain(loss, y_true, y_pred, *args, **kwargs)
            finally:
                self._in_loss -= 1
                weighted = any(a is not None for a in (*args, *kwargs.values()))
                options = {"has_weight": True} if weighted else {}
                attempt(self._failed, self._note_loss, loss, y_true, y_pred, returned, options)
            return returned

        return call

    def _entropy(self, plain: Callable[..., Any], name: str) -> Callable[..., Any]:
        def function(target: Any, output: Any, from_logits: bool = False, **kwargs: Any) -> Any:
            returned = plain(target, output, from_logits=from_logits, **kwargs)
            if not self._in_loss and not in_symbolic_scope() and attempt(self._failed, self._listens):
                attempt(self._failed, self._note_loss, name, target, output, returned, {"from_logits": from_logits})
            return returned

        return function

    def _note_loss(self, loss: Any, truth: Any, output: Any, returned: Any, options: dict[str, Any]) -> None:
        self.losses.append(HeardLoss(loss, truth, output, returned, options, line_now()))


def _is_empty(array: Any) -> bool:
    """Without an axis, or without values: torch's symbolic passes run on its meta device."""
    return not len(array.shape) or bool(getattr(array, "is_meta", False))
