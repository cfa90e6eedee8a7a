"""Shapes that do not fit in operations the user wrote out: products, sums, joins, convolutions with a weight of one's own."""

import re

import torch
from torch import nn

from sleuth.adapters.torch.failures.scene import Explained, Patterns, Scene, count, sides

PRODUCTS = ("matmul", "__matmul__", "__rmatmul__", "mm", "bmm", "addmm", "baddbmm")
CONVOLUTIONS = ("conv1d", "conv2d", "conv3d")
# Axes behind these two are height, width or length.
CHANNELS = 1


def _product(match: re.Match[str], scene: Scene) -> Explained | None:
    if _is_layer(scene) or len(scene.operands) < 2:
        return None
    left, right = scene.operands[:2]
    one, other = (scene.name_of(t) or word for t, word in ((left, "the left side"), (right, "the right side")))
    if scene.operation == "linear":
        return _functional_linear(left, right, one, other)
    if scene.operation not in PRODUCTS or not left.dim() or right.dim() < 2:
        return None
    has, wants = left.shape[-1], right.shape[-2]
    got = f"{one} {sides(left.shape)} times {other} {sides(right.shape)}"
    if right.shape[-1] == has:
        cure = f"turn {other} around: {other}.transpose(-2, -1)"
    elif isinstance(right, nn.Parameter):
        cure = f"give {other} the shape {sides((*right.shape[:-2], has, right.shape[-1]))}"
    else:
        cure = f"make the last size of {one} and the second to last of {other} equal ({has} and {wants})"
    return Explained("shape", f"inner sizes that are equal ({has} and {wants})", got, cure)


def _functional_linear(x: torch.Tensor, weight: torch.Tensor, one: str, other: str) -> Explained:
    has = x.shape[-1]
    got = f"{one} {sides(x.shape)} and {other} {sides(weight.shape)}"
    if weight.shape[0] == has:
        cure = f"linear takes the weight as (out, in): hand over {other}.T, or give {other} the shape {sides(weight.shape[::-1])}"
    else:
        cure = f"linear takes the weight as (out, in): give {other} the shape {sides((weight.shape[0], has))}"
    return Explained("shape", f"a weight of shape (out, {has})", got, cure)


def _channels(match: re.Match[str], scene: Scene) -> Explained | None:
    if _is_layer(scene) or scene.operation not in CONVOLUTIONS or len(scene.operands) < 2:
        return None
    x, weight = scene.operands[:2]
    name = scene.name_of(weight) or "the weight"
    wants, got = int(match[2]), int(match[3])
    shape = (weight.shape[0], got, *weight.shape[2:])
    cure = f"give {name} the shape {sides(shape)}: (out, in, …)"
    if x.shape[-1] == wants:
        cure = f"the channels stand last; bring them forward: x.permute{(0, x.dim() - 1, *range(1, x.dim() - 1))}"
    return Explained(
        "shape",
        f"{count(wants, 'channel')} ({name} {sides(weight.shape)})",
        f"{count(got, 'channel')} (shape {sides(x.shape)})",
        cure,
    )


def _sum(match: re.Match[str], scene: Scene) -> Explained | None:
    a, b, axis = map(int, match.groups())
    if len(scene.operands) < 2:
        return None
    left, right = scene.operands[:2]
    got = " and ".join(f"{scene.name_of(t) or ''} {sides(t.shape)}".strip() for t in (left, right))
    back = max(left.dim(), right.dim()) - axis
    deep = left.dim() == right.dim() > 2 and _is_image(scene, left)
    if deep and axis > CHANNELS:
        cure = (
            f"keep the size of the maps ({a} and {b}): padding='same' (kernel_size // 2) in the convolution between, the same "
            "stride in the shortcut, or crop"
        )
    elif deep and axis == CHANNELS:
        layer = f"nn.Conv{left.dim() - 2}d({a}, {b}, 1)"
        cure = f"match the channels ({a} and {b}) with a convolution of size 1 in the shortcut: {layer}"
    elif back == 1:
        cure = f"match the features ({a} and {b}): nn.Linear({a}, {b}) on one side, or make both layers equally wide"
    else:
        cure = f"give both sides the same size on axis {axis} ({a} and {b}): reshape one side, or add an axis with unsqueeze"
    return Explained("shape", "equal sizes", f"{got} (axis {axis})", cure)


def _is_image(scene: Scene, tensor: torch.Tensor) -> bool:
    modules = scene.model.modules() if scene.model is not None else ()
    return tensor.dim() >= 4 or any(isinstance(m, nn.modules.conv._ConvNd) for m in modules)


def _join(match: re.Match[str], scene: Scene) -> Explained | None:
    axis, a, b = map(int, match.groups())
    parts = [t for t in scene.operands if t.dim()]
    if len(parts) < 2:
        return None
    got = " and ".join(f"{scene.name_of(t) or ''} {sides(t.shape)}".strip() for t in parts[:3])
    differing = [i for i in range(parts[0].dim()) if len({t.shape[i] for t in parts if t.dim() == parts[0].dim()}) > 1]
    if len(differing) == 1:
        cure = f"join along axis {differing[0]}, the only one that differs: torch.cat([…], dim={differing[0]})"
    elif parts[0].dim() >= 4 and all(i > CHANNELS or i == axis for i in differing):
        cure = "bring the maps to one size: nn.functional.interpolate(a, size=b.shape[2:]), or pad the convolution between"
    else:
        cure = f"make the sizes {a} and {b} equal; in torch.cat(…, dim={axis}) only axis {axis} may differ"
    return Explained("shape", f"equal sizes outside axis {axis}", got, cure)


def _einsum(match: re.Match[str], scene: Scene) -> Explained:
    letter, size, operand, seen = match.groups()
    shapes = ", ".join(f"{scene.name_of(t) or ''} {sides(t.shape)}".strip() for t in scene.operands)
    named = scene.name_of(scene.operands[int(operand)]) if int(operand) < len(scene.operands) else None
    cure = f"make {letter} the same size everywhere ({seen} and {size})" + (f": {named} has {size} there" if named else "")
    return Explained("shape", f"one size for {letter}", f"{shapes} ({letter} is {seen} and {size})", cure)


def _attention(match: re.Match[str], scene: Scene) -> Explained | None:
    if scene.operation == "scaled_dot_product_attention" and len(scene.operands) >= 2:
        query, key = scene.operands[:2]
        wide = f"({query.shape[-1]} and {key.shape[-1]})"
        cure = f"make query and key equally wide {wide}: give the layers behind them the same number of outputs"
        return Explained(
            "shape", f"keys of {query.shape[-1]} features", f"query {sides(query.shape)}, key {sides(key.shape)}", cure
        )
    return _product(match, scene)


def _is_layer(scene: Scene) -> bool:
    return scene.module is not None and type(scene.module).__module__.startswith("torch.nn.")


OPERATIONS = Patterns(
    (
        (r"mat1 and mat2 shapes cannot be multiplied|inconsistent tensor size|size mismatch, got", _product),
        (r"expected input\[([\d, ]+)\] to have (\d+) channels, but got (\d+) channels", _channels),
        (r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension (\d+)", _sum),
        (r"Sizes of tensors must match except in dimension (\d+)\. Expected size (\d+) but got size (\d+)", _join),
        (r"subscript (\w) has size (\d+) for operand (\d+) which does not broadcast with previously seen size (\d+)", _einsum),
        (r"first two dimensions of batch2 tensor to be: \[([\d, ]+)\] but got: \[([\d, ]+)\]", _attention),
    )
)  # fmt: skip
