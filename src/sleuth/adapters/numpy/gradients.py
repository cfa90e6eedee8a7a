"""Gradients as backward() hands them over: a dict, pairs, a list in the order of parameters(), or kept on the model."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sleuth.adapters.common.manual_loop.calling import takes_nothing
from sleuth.adapters.numpy.forms.names import by_marked_name, returned_names
from sleuth.adapters.numpy.model_parts import Parameters
from sleuth.core.errors import Unsupported


class WrongGradients(ValueError):
    """backward() returned something that does not belong to the parameters."""

    def __init__(
        self, message: str, name: str = "", expected: str | None = None, got: str | None = None, advice: str | None = None
    ):
        super().__init__(message)
        self.name, self.expected, self.got, self.advice = name, expected, got, advice
        self.value: Any = None  # what was given in place of the gradient


def whole_numbers(name: str, dtype: Any) -> WrongGradients:
    told = f"{name} holds whole numbers ({dtype}), and no step of the update can change them by less than one"
    advice = f"make {name} of floating point, such as {name}.astype(float): {dtype} cuts every update off to a whole number"
    return WrongGradients(told, name, "weights of floating point", f"{name} of {dtype}", advice)


def by_name(raw: Any, parameters: Parameters, model: Any) -> dict[str, np.ndarray | None]:
    """By parameter; None for one that backward() leaves out."""
    names = parameters.names
    found = by_marked_name(_with_names(raw, model), list(names))
    found = found or dict(zip(names, _listed(raw, parameters, model), strict=True))
    for name, array in parameters.arrays().items():
        gradient = found.get(name)
        if gradient is not None and np.shape(gradient) != array.shape:
            wrong = _misshapen(name, np.shape(gradient), array.shape)
            wrong.value = np.asarray(gradient)
            raise wrong
    # Copies: the model may use the same buffers again at the next backward.
    return {k: None if v is None else np.array(v) for k, v in found.items()}


def _with_names(raw: Any, model: Any) -> Any:
    """`return dW1, db1, dW2, db2` says by its names what is what; the order may be any."""
    if not isinstance(raw, tuple):
        return raw
    names = returned_names(getattr(model, "backward", None))
    return dict(zip(names, raw, strict=True)) if len(names) == len(raw) else raw


def _misshapen(name: str, got: tuple[int, ...], wanted: tuple[int, ...]) -> WrongGradients:
    advice = f"give {name} a gradient of its own shape"
    if len(got) == len(wanted) + 1 and got[1:] == wanted:
        advice = f"sum the gradient of {name} over the batch: dy.sum(axis=0)"
    elif len(got) == 2 and got[::-1] == wanted and min(got) > 1:
        advice = f"transpose the gradient of {name}: for y = x @ W it is x.T @ dy"
    elif got == () and _is_bias(wanted):
        advice = f"sum the gradient of {name} over the batch alone, not over everything: {_sum(wanted)}"
    elif _is_bias(got) and _is_bias(wanted):
        advice = f"sum the gradient of {name} over the batch, which is the other axis: {_sum(wanted)}"
    told = f"backward() gave a gradient of shape {got} for {name} of shape {wanted}"
    return WrongGradients(told, name, f"a gradient of shape {wanted} for {name}", f"one of shape {got}", advice)


def _is_bias(shape: tuple[int, ...]) -> bool:
    """One number for each unit: a row, a column, or neither."""
    return len(shape) in (1, 2) and sum(n > 1 for n in shape) <= 1


def _sum(wanted: tuple[int, ...]) -> str:
    column = len(wanted) == 2 and wanted[1] == 1
    return f"dy.sum(axis={1 if column else 0}{', keepdims=True' if len(wanted) == 2 else ''})"


def _listed(raw: Any, parameters: Parameters, model: Any) -> list[Any]:
    count = len(parameters.names)
    for given in (raw, parameters.held_gradients(), _kept(model)):
        if isinstance(given, np.ndarray) and count != 1:
            continue  # the gradient by the input; those by the parameters are kept elsewhere
        values = _in_order(given)
        if len(values) == count:
            return values
        if given is raw and values:
            raise WrongGradients(f"backward() gave {len(values)} gradients for the {count} arrays of parameters()")
    raise Unsupported("backward() does not return the gradients of parameters(): return them in that order, or as a dict")


def _kept(model: Any) -> Any:
    kept = getattr(model, "gradients", getattr(model, "grads", None))
    if callable(kept):
        return kept() if takes_nothing(kept) else None
    return kept


def _in_order(given: Any) -> list[Any]:
    if given is None or isinstance(given, np.ndarray):
        return [] if given is None else [given]
    values = list(given.values() if isinstance(given, Mapping) else given)
    return [v[1] if isinstance(v, tuple) and len(v) == 2 and isinstance(v[0], str) else v for v in values]
