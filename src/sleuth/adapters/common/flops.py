"""Floating-point operations of a layer's forward pass, for frameworks that do not count them: a product and a sum are two, as
torch counts them; biases, activations and normalisation are left out."""

from collections.abc import Sequence
from math import prod

COUNTED = ("linear", "conv", "recurrent", "attention")


def layer_flops(family: str, weights: Sequence[tuple[int, ...]], output: tuple[int, ...], units: int, scores: int = 0) -> int:
    """`weights`: shapes of its matrices and kernels; `units`: how many values its output has at each place; `scores`: of an
    attention, the products of its queries with its keys (samples × heads × queries × keys × width of a head)."""
    if family not in COUNTED or not units:
        return 0
    places = prod(output) // units
    return 2 * places * sum(prod(w) for w in weights if len(w) > 1) + 4 * scores
