"""Listening to one forward and loss on a bench: every op, the layer it ran in, and what the losses were given."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
import torch
from torch import nn
from torch.overrides import TorchFunctionMode, resolve_name

from sleuth.adapters.torch.architecture import ACTIVATIONS, family_of
from sleuth.adapters.torch.place import current_location
from sleuth.core.location import Location
from sleuth.core.runtime.tree import leaves

FUNCTIONAL_ACTIVATIONS = {*ACTIVATIONS.values(), "relu_", "sigmoid_", "tanh_", "relu6", "softplus"}


@dataclass(frozen=True)
class Op:
    """One call into torch. Tensors are known by id; the listener keeps them alive, so ids stay unique."""

    name: str
    layer: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    location: Location | None


def is_tensor(thing: Any) -> TypeGuard[torch.Tensor]:
    return isinstance(thing, torch.Tensor)


def name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", type(function).__name__)
    if name in ("__get__", "__set__"):
        return (resolve_name(function) or "").split(".")[-2]
    return name


class Listener(TorchFunctionMode):
    """Calls `on_op` after every torch function, `on_failure` when one raises, `on_layer` after every module's forward."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.ops: list[Op] = []
        self.alive: list[torch.Tensor] = []
        self.on_op: list[Callable[[Op, Any], None]] = []
        self.on_failure: list[Callable[[Op], None]] = []
        self.on_layer: list[Callable[[str, nn.Module, Any], None]] = []
        self.called: set[str] = set()
        self._model = model
        self._stack: list[str] = []

    @property
    def layer(self) -> str:
        return self._stack[-1] if self._stack else ""

    @property
    def outside(self) -> bool:
        """No layer is at work: what comes now comes from the user's loop."""
        return not self._stack

    @property
    def inside(self) -> bool:
        """Is the model, or a part of it, at work?"""
        return bool(self._stack)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        try:
            output = func(*args, **kwargs)
        except Exception:
            op = self._describe(func, args, kwargs, None)
            for fail in self.on_failure:
                fail(op)
            raise
        op = self._describe(func, args, kwargs, output)
        if op.inputs or op.outputs:
            self.ops.append(op)
            for listen in self.on_op:
                listen(op, output)
        return output

    def _describe(self, func: Any, args: Any, kwargs: Any, output: Any) -> Op:
        tensors_in = [t for _, t in leaves((list(args), dict(kwargs)), is_tensor)]
        tensors_out = [t for _, t in leaves(output, is_tensor)]
        self.alive += tensors_in + tensors_out
        inputs, outputs = tuple(map(id, tensors_in)), tuple(map(id, tensors_out))
        return Op(name_of(func), self.layer, inputs, outputs, args, kwargs, current_location())

    @contextmanager
    def listening(self) -> Iterator["Listener"]:
        """Hooks on the bench's own copy, gone on every way out."""
        with ExitStack() as stack:
            for path, module in self._model.named_modules():
                before = module.register_forward_pre_hook(self._enter(path))
                after = module.register_forward_hook(self._leave(path), always_call=True)
                stack.callback(before.remove)
                stack.callback(after.remove)
            stack.enter_context(self)
            yield self

    def _enter(self, path: str) -> Callable[..., None]:
        def enter(module: nn.Module, inputs: Any) -> None:
            self._stack.append(path)
            self.called.add(path)

        return enter

    def _leave(self, path: str) -> Callable[..., None]:
        def leave(module: nn.Module, inputs: Any, output: Any) -> None:
            if self._stack:
                self._stack.pop()
            if output is not None:
                for listen in self.on_layer:
                    listen(path, module, output)

        return leave


@dataclass
class Activity:
    """The output of one layer (or functional activation), measured as soon as it exists: in-place ops may change it."""

    path: str
    family: str
    activation: str
    values: np.ndarray
    unit_axis: int


class ActivityNotes:
    """Collects the outputs of leaf layers and of activations written as functions."""

    def __init__(self, listener: Listener, measure: Callable[[torch.Tensor], np.ndarray]) -> None:
        self.notes: list[Activity] = []
        self._listener = listener
        self._measure = measure
        self._last_weighty = "linear"
        self._inner = {path for path, module in listener._model.named_modules() if path and not module._modules}
        listener.on_layer.append(self._layer)
        listener.on_op.append(self._op)

    def _layer(self, path: str, module: nn.Module, output: Any) -> None:
        if module._modules:
            return
        family = family_of(module)
        if family in ("linear", "conv"):
            self._last_weighty = family
        self._note(path, family, ACTIVATIONS.get(type(module), ""), output)

    def _op(self, op: Op, output: Any) -> None:
        if op.name not in FUNCTIONAL_ACTIVATIONS:
            return
        if op.layer in self._inner:
            return
        path = f"{op.layer}.{op.name}" if op.layer else op.name
        self._note(path, "activation", op.name.rstrip("_"), output)

    def _note(self, path: str, family: str, activation: str, output: Any) -> None:
        tensor = next((t for _, t in leaves(output, is_tensor)), None)
        if tensor is None or tensor.dim() == 0 or tensor.is_meta:
            return
        images = tensor.dim() >= 4 or (tensor.dim() == 3 and self._last_weighty == "conv")
        axis = 1 if images else tensor.dim() - 1
        self.notes.append(Activity(path, family, activation, self._measure(tensor), axis))
