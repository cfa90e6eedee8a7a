"""Turning a copied model into one that computes in float64."""

from typing import Any

import keras

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.model_parts import layers

WIDE = "float64"


def widen(model: Any, loss: Any) -> None:
    """In place. Layers, losses and the inputs of functional models each have a dtype of their own."""
    policy = keras.dtype_policies.get(WIDE)
    for _, layer in [*layers(model), ("", model)]:
        _widen_layer(layer, policy)
    for thing in (loss, getattr(model, "_compile_loss", None)):
        _widen_loss(thing, policy)
    for variable in model.variables:
        if "float" in backend.dtype(variable):
            value = keras.ops.cast(variable.value, WIDE)
            object.__setattr__(variable, "_dtype", WIDE)
            _store(variable, value)


def _widen_layer(layer: Any, policy: Any) -> None:
    if "float" in str(layer.compute_dtype):
        object.__setattr__(layer, "_dtype_policy", policy)
    functional = getattr(layer, "_functional", None) or layer
    for tensor in getattr(functional, "_inputs", None) or ():
        if "float" in str(tensor.dtype):
            tensor._dtype = WIDE
    if functional is not layer and functional is not None:
        object.__setattr__(functional, "_dtype_policy", policy)


def _widen_loss(loss: Any, policy: Any) -> None:
    if not isinstance(loss, keras.losses.Loss):
        inside = getattr(loss, "loss", None)  # a function around a loss of Keras'
        if isinstance(inside, keras.losses.Loss):
            _widen_loss(inside, policy)
        return
    loss._dtype_policy, loss._dtype = policy, WIDE
    for part in getattr(loss, "_flat_losses", None) or ():
        _widen_loss(part.loss, policy)
    given = getattr(loss, "_user_loss", None)
    for part in given.values() if isinstance(given, dict) else given if isinstance(given, list | tuple) else (given,):
        if isinstance(part, keras.losses.Loss):
            _widen_loss(part, policy)


def _store(variable: Any, value: Any) -> None:
    """A parameter of torch keeps its dtype when it is assigned to: its data are replaced."""
    if hasattr(variable._value, "data") and hasattr(variable._value, "requires_grad"):
        variable._value.data = value.detach()
    else:
        variable._value = value
