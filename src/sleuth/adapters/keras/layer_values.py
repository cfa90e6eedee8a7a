"""Values inside a model while a bench runs it: what layers put out, and the gradients that come back to them."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import keras
from keras.src import backend as keras_backend
from keras.src.backend.common.symbolic_scope import in_symbolic_scope

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.bench import held_by
from sleuth.adapters.keras.families import ACTIVATIONS, family_of, fused
from sleuth.adapters.keras.model_parts import inner, layers, trainable
from sleuth.adapters.keras.pass_listener import CLOSED
from sleuth.adapters.keras.patches import replaced
from sleuth.core.contract.adapter import Bench, LayerValues
from sleuth.core.contract.workload import Hear, Heard, Wanted
from sleuth.core.runtime.tree import leaves, map_arrays


class KerasLayerValues(LayerValues):
    def held_gradients(self, model: Any) -> Mapping[str, Any]:
        """On torch those that the last step has left; on jax gradients are values that nobody keeps."""
        return {held.path: getattr(held.variable.value, "grad", None) for held in trainable(model)}

    @contextmanager
    def layer_values(
        self, bench: Bench, wanted: Wanted, value: Hear, gradient: Hear | None = None, *, operations: bool = False
    ) -> Iterator[None]:
        held = held_by(bench)
        with held.side.step_by_step(), Overhearing(held.model, wanted, value, gradient, held.side.told).listening():
            yield


class Overhearing:
    """`told` passes an array on and tells its values now and its gradient when that comes."""

    def __init__(self, model: Any, wanted: Wanted, value: Hear, gradient: Hear | None, told: Callable[..., Any]) -> None:
        self._model = model
        self._wanted, self._value, self._gradient, self._told = wanted, value, gradient, told
        self._layers = {id(layer): (path, layer) for path, layer in layers(model)}
        self._calls: Counter[str] = Counter()
        self._stack: list[tuple[str, bool]] = []  # layers at work, and whether they have no parts
        self._channels_first = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        with ExitStack() as stack:
            stack.enter_context(replaced(keras.layers.Layer, "__call__", self._calling))
            for name in ACTIVATIONS:
                owner = keras_backend.numpy if name == "tanh" else keras_backend.nn
                if hasattr(owner, name):
                    stack.enter_context(replaced(owner, name, partial(self._function, word=ACTIVATIONS[name])))
            yield

    def _calling(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def call(layer: Any, *args: Any, **kwargs: Any) -> Any:
            path, _ = self._layers.get(id(layer), ("", None))
            if (not path and layer is not self._model) or in_symbolic_scope() or self._is_closed():
                return plain(layer, *args, **kwargs)
            if layer is self._model and not self._stack:
                self._calls.clear()  # another pass begins
            whole = not inner(layer) or family_of(layer) in CLOSED
            self._stack.append((path, whole))
            try:
                output = plain(layer, *args, **kwargs)
            finally:
                self._stack.pop()
            if family_of(layer) in ("conv", "pool"):
                self._channels_first = getattr(layer, "data_format", "") == "channels_first"
            if path and self._wanted(path, whole):
                return self._tell(path, type(layer).__name__, fused(layer), output)
            return output

        return call

    def _is_closed(self) -> bool:
        """Inside a recurrent layer or an attention: what goes on there is theirs."""
        layer = next((one for path, one in self._layers.values() if self._stack and path == self._stack[-1][0]), None)
        return layer is not None and family_of(layer) in CLOSED

    def _function(self, plain: Callable[..., Any], word: str) -> Callable[..., Any]:
        """An activation that a `call` of the user's own applies; that of a layer is told with the layer."""

        def function(x: Any, *args: Any, **kwargs: Any) -> Any:
            output = plain(x, *args, **kwargs)
            layer, whole = self._stack[-1] if self._stack else ("", True)
            path = f"{layer}.{word}" if layer else word
            if whole or not self._stack or in_symbolic_scope() or not self._wanted(path, True):
                return output
            return self._tell(path, word, word, output)

        return function

    def _tell(self, path: str, kind: str, activation: str, output: Any) -> Any:
        self._calls[path] += 1
        name = path if self._calls[path] == 1 else f"{path}#{self._calls[path]}"
        parts = {id(array): part for part, array in leaves(output, backend.is_array)}

        def tell(array: Any) -> Any:
            if not len(array.shape) or getattr(array, "is_meta", False):
                return array
            part = parts.get(id(array), "")
            heard = Heard(f"{name}[{part}]" if part else name, kind, activation, self._axis(array))
            return self._told(heard, array, self._value, self._gradient)

        return map_arrays(output, tell, backend.is_array)

    def _axis(self, array: Any) -> int:
        dims = len(array.shape)
        return 1 if self._channels_first and dims >= 4 else dims - 1
