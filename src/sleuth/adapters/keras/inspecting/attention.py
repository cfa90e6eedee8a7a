"""Attention weights of one forward pass: of Keras' MultiHeadAttention and GroupedQueryAttention."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import keras
import numpy as np

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.inspecting.forward_pass import say_why_it_fails
from sleuth.adapters.keras.inspecting.model_copy import call, guest
from sleuth.adapters.keras.model_parts import layers
from sleuth.adapters.keras.patches import replaced
from sleuth.core.contract.inspection import AttentionMap
from sleuth.core.errors import UnusableInput

KINDS = (keras.layers.MultiHeadAttention, keras.layers.GroupQueryAttention)


def attention(model: Any, inputs: Any) -> tuple[AttentionMap, ...]:
    found: list[AttentionMap] = []
    with guest(model) as visited, ExitStack() as stack:
        paths = {id(layer): path for path, layer in layers(visited) if isinstance(layer, KINDS)}
        for kind in {type(layer) for _, layer in layers(visited) if isinstance(layer, KINDS)}:
            stack.enter_context(replaced(kind, "call", lambda plain: _asking(plain, paths, found)))
        try:
            call(visited, inputs)
        except Exception:
            say_why_it_fails(model, inputs)
            raise
    if not found:
        raise UnusableInput(
            f"no attention was seen in {type(model).__name__}: neither MultiHeadAttention nor GroupQueryAttention ran."
        )
    return tuple(found)


def _asking(plain: Callable[..., Any], paths: dict[int, str], found: list[AttentionMap]) -> Callable[..., Any]:
    """The weights come only where they are asked for; who did not ask is given what he would have had."""

    def ask(layer: Any, *args: Any, **kwargs: Any) -> Any:
        wanted = kwargs.pop("return_attention_scores", False)
        output, weights = plain(layer, *args, return_attention_scores=True, **kwargs)
        if backend.is_tensor(weights):
            path = paths.get(id(layer), layer.name)
            found.append(AttentionMap(path, type(layer).__name__, np.array(backend.values(weights))))
        return (output, weights) if wanted else output

    return ask
