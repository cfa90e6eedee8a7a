"""A loss is one number, or nothing can be learned from it."""

from typing import Any

import keras
import numpy as np

from sleuth.adapters.keras import backend
from sleuth.core.errors import Unsupported
from sleuth.core.words import kind_of


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
