"""Attention weights of one forward pass: of `mx.fast.scaled_dot_product_attention`, which returns none, from what it was given
and held against what it returned; and of a softmax by hand that is multiplied with values."""

import math
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from sleuth.adapters.common.inspecting.attention_weights import are_weights, by_heads, require_room
from sleuth.adapters.common.inspecting.layer_names import require_passage
from sleuth.adapters.mlx.arrays import values
from sleuth.adapters.mlx.copying import call, guest
from sleuth.adapters.mlx.inspecting.forward_pass import passage
from sleuth.adapters.mlx.kinds import family_of
from sleuth.adapters.mlx.model_parts import modules
from sleuth.adapters.mlx.operations import Operation, Operations
from sleuth.core.contract.inspection import AttentionMap
from sleuth.core.errors import UnusableInput

FAST = "scaled_dot_product_attention"
PRODUCTS = ("matmul", "einsum")
# Passed on from a softmax to the product with the values.
PASSING = ("astype", "reshape", "transpose", "swapaxes", "moveaxis", "expand_dims", "squeeze", "contiguous", "stop_gradient")
# The kernel adds up in another order, and rounds between.
ROUNDED, LEAST = 8.0, 1e-4


def attention(model: nn.Module, inputs: Any) -> tuple[AttentionMap, ...]:
    with guest(model) as visited:
        operations = Operations(visited)
        try:
            with operations.listening():
                call(visited, inputs)
        except Exception:
            require_passage(passage(model, inputs))
            raise
        kinds = {path: type(m).__name__ for path, m in modules(visited) if family_of(m) == "attention"}
        found = told(operations.heard, kinds)
    if not found:
        raise UnusableInput(
            f"no attention was seen in {type(model).__name__}: neither MultiHeadAttention nor mx.fast.{FAST} nor a softmax "
            "that is multiplied with values ran."
        )
    return tuple(found)


def told(heard: list[Operation], kinds: dict[str, str]) -> list[AttentionMap]:
    """By the operations of one pass. `kinds`: paths of attention layers → their class."""
    maps: list[AttentionMap] = []
    # What came out of a softmax; arrays are kept by `heard`, so that ids stay unique.
    softmaxes: set[int] = set()
    shapes: list[tuple[int, ...]] = []
    for operation in heard:
        first = operation.given[0] if operation.given else None
        if operation.name == FAST:
            weights = _of_fast(operation, shapes)
            maps.append(AttentionMap(operation.layer, kinds.get(operation.layer, FAST), weights))
        elif operation.name == "softmax" and operation.made and operation.made[0].ndim >= 3:
            softmaxes.add(id(operation.made[0]))
        elif first is None or id(first) not in softmaxes:
            continue
        elif operation.name in PASSING:
            softmaxes.add(id(operation.made[0]))
        elif operation.name in PRODUCTS and first.ndim >= 3 and _over_values(operation):
            require_room([*shapes, tuple(first.shape)])
            shapes.append(tuple(first.shape))
            by_hand = values(first)
            if are_weights(by_hand, float(mx.finfo(first.dtype).eps)):
                softmaxes.discard(id(first))
                maps.append(AttentionMap(operation.layer, "softmax", by_heads(by_hand.astype(np.float32))))
    return maps


def _over_values(operation: Operation) -> bool:
    """Samples have values of their own: a product with a table of weights, or of one share for each value, is no attention."""
    if operation.name == "matmul":
        return operation.given[1].ndim >= 3
    taken, _, made = str(operation.settings.get("0", "")).replace(" ", "").partition("->")
    left, _, right = taken.partition(",")
    shared, free = set(left[:-1]) & set(right) & set(made), set(left) - set(right)
    return left[-1:] in right and left[-1:] not in made and bool(shared and free)


def _of_fast(operation: Operation, shapes: list[tuple[int, ...]]) -> np.ndarray:
    query, key, value = operation.given[:3]
    shapes.append((*query.shape[:-1], key.shape[-2]))
    require_room(shapes)
    settings = operation.settings
    weights = weights_of(query, key, settings["scale"], settings.get("mask"), settings.get("sinks"))
    groups = query.shape[1] // value.shape[1]
    product = weights @ mx.repeat(value, groups, axis=1).astype(mx.float32)
    difference, size = (float(mx.max(mx.abs(a))) for a in (product - operation.made[0], value))
    if difference > max(LEAST, ROUNDED * float(mx.finfo(query.dtype).eps)) * max(size, 1e-30):
        raise UnusableInput(
            f"the weights of the attention in {operation.layer or 'the model'} cannot be told: what they give differs from what "
            f"mx.fast.{FAST} returned by {difference:.1e}."
        )
    return values(weights)


def weights_of(query: mx.array, key: mx.array, scale: float, mask: Any, sinks: mx.array | None) -> mx.array:
    """As the kernel computes them inside: in float32, whatever it is given."""
    key = mx.repeat(key, query.shape[1] // key.shape[1], axis=1)
    scores = (query.astype(mx.float32) * scale) @ key.astype(mx.float32).swapaxes(-1, -2)
    if isinstance(mask, str):
        # The last query stands at the last key.
        queries, keys = scores.shape[-2:]
        mask = mx.arange(keys)[None] <= mx.arange(keys - queries, keys)[:, None]
    if mask is not None:
        scores = mx.where(mask, scores, -math.inf) if mask.dtype == mx.bool_ else scores + mask
    if sinks is None:
        return mx.softmax(scores, axis=-1)
    # A sink takes a share and gives no value.
    sink = mx.broadcast_to(sinks.astype(mx.float32)[:, None, None], (*scores.shape[:-1], 1))
    return mx.softmax(mx.concatenate([sink, scores], axis=-1), axis=-1)[..., 1:]
