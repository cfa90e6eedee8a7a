"""Floating-point operations of one call of a layer: MLX counts none."""

from math import prod
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from sleuth.adapters.common.flops import layer_flops
from sleuth.adapters.mlx.arrays import arrays_in
from sleuth.adapters.mlx.kinds import TRANSPOSED, family_of
from sleuth.adapters.mlx.model_parts import parameters


def flops_of(module: nn.Module, args: tuple[Any, ...], output: Any) -> int:
    family, made = family_of(module), next(iter(arrays_in(output)), None)
    if made is None or not made.ndim:
        return 0
    weights = [tuple(e.array.shape) for e in parameters(module)]
    places = tuple(made.shape)
    if isinstance(module, TRANSPOSED) and args and isinstance(args[0], mx.array):
        # Each place of the input is multiplied with the whole kernel.
        return 2 * prod(args[0].shape[:-1]) * prod(module.weight.shape)
    if family == "attention":
        return layer_flops(family, weights, places, places[-1], _scores(module, args, made))
    return layer_flops(family, weights, places, places[-1])


def _scores(module: nn.Module, args: tuple[Any, ...], made: mx.array) -> int:
    """Queries times keys, over all heads: samples × queries × keys × width."""
    keys = args[1] if len(args) > 1 and isinstance(args[1], mx.array) else args[0]
    width = module.query_proj.weight.shape[0] if "query_proj" in module else made.shape[-1]
    return int(prod(made.shape[:-1]) * keys.shape[-2] * width)
