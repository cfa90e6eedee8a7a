"""What the loss of a Keras training is, and how it is called; and that it is one number."""

import inspect
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras.src.losses.losses import LossFunctionWrapper

from sleuth.adapters.keras import backend
from sleuth.core.errors import Unsupported
from sleuth.core.subject import Subject
from sleuth.core.words import kind_of

# Keras' own losses by the function beneath them → family; those that ask `from_logits` have two.
FAMILIES = {
    "mean_squared_error": "mse",
    "mean_absolute_error": "l1",
    "huber": "huber",
    "hinge": "hinge",
    "squared_hinge": "hinge",
    "categorical_hinge": "hinge",
}
BY_LOGITS = {
    "categorical_crossentropy": ("cross-entropy", "probabilities"),
    "sparse_categorical_crossentropy": ("cross-entropy", "probabilities"),
    "binary_crossentropy": ("bce-logits", "bce"),
}
TRUTHS = ("y_true", "true", "target", "targets", "label", "labels", "y", "truth")


def loss_name(subject: Subject) -> str | None:
    thing = subject.loss or subject.step or getattr(subject.model, "loss", None)
    if thing is None or isinstance(thing, str):
        return thing
    if isinstance(thing, list | tuple | dict):
        parts = list(thing.values()) if isinstance(thing, dict) else list(thing)
        return ", ".join(dict.fromkeys(name_of(part) for part in parts if part is not None)) or None
    return name_of(thing)


def has_own_loss(model: Any) -> bool:
    """A `compute_loss` of the user's own needs no loss to be compiled with."""
    return type(model).compute_loss is not keras.Model.compute_loss


def name_of(loss: Any) -> str:
    if isinstance(loss, str):
        return loss
    function = getattr(loss, "fn", None)
    if function is not None and type(loss).__name__ == "LossFunctionWrapper":
        return str(getattr(function, "__name__", type(function).__name__))
    return str(getattr(loss, "__name__", type(loss).__name__))


def family_of(loss: Any) -> tuple[str, dict[str, Any]]:
    """(family, options) of a loss object; "other" where only its values can tell."""
    function = getattr(loss, "fn", None)
    options = {k: v for k, v in getattr(loss, "_fn_kwargs", {}).items() if isinstance(v, int | float | bool | str)}
    name = getattr(function, "__name__", "")
    if not getattr(function, "__module__", "").startswith("keras."):
        return "other", options
    if name in BY_LOGITS:
        return BY_LOGITS[name][0 if options.get("from_logits") else 1], options
    if name == "huber" and options.get("delta", 1.0) != 1.0:
        return "other", options
    return FAMILIES.get(name, "other"), options


def as_function(loss: Any) -> Callable[[Any, Any], Any]:
    """loss(output, target). Keras' own losses, and functions whose first parameter is the truth, want the target first."""
    if isinstance(loss, str):
        loss = keras.losses.get(loss)
    if not isinstance(loss, keras.losses.Loss) and getattr(loss, "__module__", "").startswith("keras."):
        loss = LossFunctionWrapper(loss)  # as compile does: the function alone gives one number a sample
    return (lambda output, target: loss(target, output)) if takes_truth_first(loss) else loss


def takes_truth_first(loss: Any) -> bool:
    if isinstance(loss, keras.losses.Loss) or getattr(loss, "__module__", "").startswith("keras."):
        return True
    try:
        names = [n.lower() for n in inspect.signature(loss).parameters]
    except (TypeError, ValueError):
        return False
    return bool(names) and names[0] in TRUTHS


class NotOneNumber(ValueError):
    """A loss that no gradient can be taken of."""


def one_number(value: Any) -> Any:
    if value is None:
        raise Unsupported("no loss was given, and the model is not compiled with one: model.compile(loss=…)")
    require_scalar(value)
    return keras.ops.reshape(value, ())


def require_scalar(value: Any) -> None:
    shape = tuple(value.shape) if backend.is_array(value) or hasattr(value, "shape") else None
    if shape is None and isinstance(value, int | float):
        raise NotOneNumber("the loss is a plain number: it has left the graph, return what the operations gave")
    if shape is None or int(np.prod(shape)) != 1:
        got = kind_of(value) if shape is None else f"an array of shape {shape}"
        raise NotOneNumber(f"the loss is not one number but {got}; average it: keras.ops.mean(loss)")
