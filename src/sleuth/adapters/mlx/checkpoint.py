"""A checkpoint that was refused: what it holds against what the model has, read from the call that raised."""

from types import TracebackType
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten

from sleuth.adapters.common.refused_weights import differences, users_words
from sleuth.core.observation import Misfit
from sleuth.core.runtime.place import innermost

LOADS = nn.Module.load_weights.__code__
VERB = "load_weights"


def read_misfit(error: BaseException) -> Misfit | None:
    """None where no weights were being loaded, or MLX found nothing wrong with them."""
    found = _loading(error.__traceback__)
    model, weights = (found or {}).get("self"), (found or {}).get("weights")
    if not isinstance(error, ValueError) or not isinstance(model, nn.Module) or not isinstance(weights, list):
        return None
    own = {name: tuple(array.shape) for name, array in tree_flatten(model.parameters())}
    held = {str(name): tuple(array.shape) if isinstance(array, mx.array) else None for name, array in weights}
    place = innermost(error.__traceback__)
    words: dict[str, Any] = differences(own, held) | users_words(place, VERB)
    if "state" in words:
        words["state"] = f"dict({words['state']})"
    return Misfit("names", type(model).__name__, verb=VERB, pairs=True, location=place, **words)


def _loading(trace: TracebackType | None) -> dict[str, Any] | None:
    while trace is not None:
        if trace.tb_frame.f_code is LOADS:
            return dict(trace.tb_frame.f_locals)
        trace = trace.tb_next
    return None
