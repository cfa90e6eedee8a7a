"""Which methods and functions of a hand-written network are patched, and as what."""

from collections.abc import Mapping
from typing import Any

from sleuth.adapters.common.manual_loop import loop_scope
from sleuth.adapters.common.manual_loop.calling import takes
from sleuth.adapters.common.manual_loop.function_kind import FunctionKind
from sleuth.adapters.common.manual_loop.learning_rate import is_number
from sleuth.adapters.common.manual_loop.loop_functions import LoopFunctions
from sleuth.adapters.common.manual_loop.notes import OWN
from sleuth.adapters.common.manual_loop.patches import Handlers, Patches
from sleuth.adapters.numpy.forms.functions import ByHand
from sleuth.adapters.numpy.forms.layers import Layers
from sleuth.adapters.numpy.model_parts import layers
from sleuth.adapters.numpy.stepping import CLEARING
from sleuth.adapters.numpy.watching.full_calls import FullCall, LayerCall, OptimiserCall
from sleuth.adapters.numpy.watching.light_calls import LightForward, light_call
from sleuth.adapters.numpy.watching.listener import WRITES, NumpyListener

# Method of the model, or of the optimiser → what it is for.
OF_MODEL = {
    "forward": FunctionKind.FORWARD,
    "backward": FunctionKind.BACKWARD,
    "backprop": FunctionKind.BACKWARD,
    "update": FunctionKind.UPDATE,
    "train_step": FunctionKind.TRAIN_STEP,
    "compute_loss": FunctionKind.LOSS,
    "forward_loss": FunctionKind.LOSS,
    "loss": FunctionKind.LOSS,
    **dict.fromkeys(CLEARING, FunctionKind.CLEAR),
}
OF_OPTIMISER = {"step": FunctionKind.UPDATE, "update": FunctionKind.UPDATE, **dict.fromkeys(CLEARING, FunctionKind.CLEAR)}


class HeardFunctions(LoopFunctions):
    def __init__(self, model: Any, optimiser: Any, listener: NumpyListener, patches: Patches) -> None:
        super().__init__(patches, model, listener.passes, lambda number: self._handlers(FunctionKind.LOSS, number))
        self._model, self._optimiser, self._listener = model, optimiser, listener
        self._root = model.root if isinstance(model, Layers) else model
        listener.writes_in_backward = self._in_backward()

    def install(self) -> None:
        if isinstance(self._model, ByHand):
            self._functions()
        elif self._root is not None:
            self._methods(self._root, OF_MODEL)
        self._layers()
        if self._optimiser is not None and not is_number(self._optimiser) and hasattr(self._optimiser, "__dict__"):
            self._optimisers()
        self.look_around()

    def look_around(self) -> None:
        super().look_around()
        for function in loop_scope.clippers(self._model):
            self._patches.function(function, self._handlers(FunctionKind.CLIP))

    def _handlers(self, kind: FunctionKind, number: int = OWN) -> Handlers:
        full = FullCall(self._listener, kind, number)
        return Handlers(full, light_call(self._listener.light, full))

    def _methods(self, owner: Any, kinds: Mapping[str, FunctionKind]) -> None:
        for name, kind in kinds.items():
            method = getattr(owner, name, None)
            if callable(method) and self._method_of(owner, name, self._handlers(kind)):
                in_backward = kind is FunctionKind.BACKWARD and takes(method, "rate")
                self._listener.writes_heard |= kind in WRITES or in_backward

    def _method_of(self, owner: Any, name: str, handlers: Handlers) -> bool:
        """Of this object alone; another object of the class is passed by."""
        return self._patches.method(type(owner), name, lambda thing: handlers if thing is owner else None)

    def _optimisers(self) -> None:
        for name, kind in OF_OPTIMISER.items():
            full = OptimiserCall(self._listener, kind)
            handlers = Handlers(full, light_call(self._listener.light, full))
            if self._patches.method(type(self._optimiser), name, lambda _, handlers=handlers: handlers):  # type: ignore[misc]
                self._listener.writes_heard |= kind in WRITES

    def _functions(self) -> None:
        model = self._model
        for kind, function in (
            (FunctionKind.FORWARD, model._forward),
            (FunctionKind.BACKWARD, model.backward),
            (FunctionKind.UPDATE, model._update),
            (FunctionKind.TRAIN_STEP, model.written),
        ):
            if function is None:
                continue
            if not self._patches.function(function, self._handlers(kind)):
                name = getattr(function, "__name__", kind)
                self._listener.remarks.append(f"{name}() is not heard: no module refers to it")
            elif kind in WRITES:
                self._listener.writes_heard = True

    def _layers(self) -> None:
        listener, found = self._listener, layers(self._model)
        listed = list(self._model.layers) if isinstance(self._model, Layers) and self._root is None else []
        first = listed[0] if listed else None
        by_layer: dict[int, Handlers] = {}
        for path, layer in found:
            full = LayerCall(listener, path, layer, is_first=layer is first)
            by_layer[id(layer)] = Handlers(full, LightForward(listener.light, full) if layer is first else None)
        for _, layer in found:
            name = "forward" if hasattr(layer, "forward") else "__call__"
            self._patches.method(type(layer), name, lambda thing: by_layer.get(id(thing)), lightly=bool(listed))
            if listed:
                backward = self._handlers(FunctionKind.BACKWARD)
                self._patches.method(type(layer), "backward", lambda it, backward=backward: backward if it is first else None)  # type: ignore[misc]
                listener.writes_heard |= takes(getattr(layer, "backward", takes), "rate")

    def _in_backward(self) -> bool:
        """Does backward itself change the weights?"""
        steps = [self._root] if self._root is not None else list(self._model.layers)
        return any(takes(m, "rate") for m in (getattr(s, "backward", None) for s in steps) if m is not None)
