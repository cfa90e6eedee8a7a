"""Gradients as backward() hands them over: a dict, pairs, a list in the order of parameters(), or kept on the model."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sleuth.adapters.numpy.anatomy import Parameters
from sleuth.adapters.numpy.calling import takes_nothing
from sleuth.core.errors import Unsupported


class WrongGradients(ValueError):
    """backward() returned something that does not belong to the parameters."""


def by_name(raw: Any, parameters: Parameters, model: Any) -> dict[str, np.ndarray | None]:
    """By parameter; None for one that backward() leaves out."""
    names = parameters.names
    found: dict[str, Any] = {k: raw[k] for k in names if k in raw} if isinstance(raw, Mapping) else {}
    found = found or dict(zip(names, _listed(raw, parameters, model), strict=True))
    for name, array in parameters.arrays().items():
        gradient = found.get(name)
        if gradient is not None and np.shape(gradient) != array.shape:
            got = np.shape(gradient)
            raise WrongGradients(f"backward() gave a gradient of shape {got} for {name} of shape {array.shape}")
    # Copies: the model may use the same buffers again at the next backward.
    return {k: None if v is None else np.array(v) for k, v in found.items()}


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
