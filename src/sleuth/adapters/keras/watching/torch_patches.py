"""Patches of Keras and torch for a training on Keras' torch backend: each tells one listener of a call."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import torch
from keras.src.optimizers.base_optimizer import BaseOptimizer

from sleuth.adapters.keras.patches import Function, replaced
from sleuth.adapters.listening.patches import speak_up, tell

if TYPE_CHECKING:
    from sleuth.adapters.keras.watching.torch_listener import TorchListener

Make = Callable[[Function], Function]


def step_patches(listener: "TorchListener") -> ExitStack:
    with ExitStack() as stack:
        for owner, name, make in (
            (torch.Tensor, "backward", _backward),
            (torch.nn.Module, "zero_grad", _zero_grad),
            (BaseOptimizer, "apply", _apply),
        ):
            stack.enter_context(replaced(owner, name, make(listener)))
        return stack.pop_all()


def layer_call(listener: "TorchListener") -> Make:
    told = (listener,)

    def make(plain: Function) -> Function:
        def call(layer: Any, *args: Any, **kwargs: Any) -> Any:
            if layer is listener.model:
                tell(told, "model_begins")
            hearing = listener.passing
            return plain(layer, *args, **kwargs) if hearing is None else hearing.carry(plain, layer, args, kwargs)

        return call

    return make


def train_function(listener: "TorchListener", plain: Function) -> Function:
    """Keras tells no callback of an exception."""
    told = (listener,)

    def train(data: Any) -> Any:
        tell(told, "step_begins", data)
        try:
            logs = plain(data)
        except BaseException as error:
            tell(told, "failed", error)
            raise
        tell(told, "step_over")
        return logs

    return train


def _backward(listener: "TorchListener") -> Make:
    told = (listener,)

    def make(plain: Function) -> Function:
        def backward(loss: Any, *args: Any, **kwargs: Any) -> Any:
            tell(told, "backward", loss)
            return plain(loss, *args, **kwargs)

        return backward

    return make


def _zero_grad(listener: "TorchListener") -> Make:
    told = (listener,)

    def make(plain: Function) -> Function:
        def zero_grad(module: Any, *args: Any, **kwargs: Any) -> Any:
            if module is listener.model:
                tell(told, "cleared")
            return plain(module, *args, **kwargs)

        return zero_grad

    return make


def _apply(listener: "TorchListener") -> Make:
    told = (listener,)

    def make(plain: Function) -> Function:
        is_inside = False  # optimisers that scale the loss call another one

        def apply(optimiser: Any, grads: Any, trainable_variables: Any = None) -> Any:
            nonlocal is_inside
            if is_inside:
                return plain(optimiser, grads, trainable_variables)
            grads = list(grads)
            given = None if trainable_variables is None else list(trainable_variables)
            tell(told, "before_apply", optimiser, grads, given)
            speak_up(told)
            is_inside = True
            try:
                result = plain(optimiser, grads, given)
            finally:
                is_inside = False
            tell(told, "after_apply", optimiser)
            return result

        return apply

    return make
