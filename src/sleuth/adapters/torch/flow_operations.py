"""What one call into torch does to data: its family, its settings, and where the axes of its input go."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from sleuth.adapters.torch.loss_calls import FAMILIES as LOSSES
from sleuth.adapters.torch.pass_listener import FUNCTIONAL_ACTIVATIONS, Op, is_tensor
from sleuth.core.reading.flow import Axes, reshaped

SAME = {"contiguous", "clone", "float", "double", "half", "bfloat16", "to", "type", "type_as", "requires_grad_", "cpu", "cuda"}
RESHAPES = {"view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "view_as", "reshape_as", "ravel"}
MOVES = {"transpose", "permute", "t", "T", "mT", "swapaxes", "swapdims", "movedim", "moveaxis"}
PARTS = {"__getitem__", "select", "narrow", "chunk", "split", "unbind"}
AVERAGES = {"mean", "sum"}
SCALES = {"add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "neg", "negative", "rsub", "addcmul"}
SUMS = {"add", "sub", "subtract", "rsub", "addcmul", "addcdiv"}
DIVISIONS = {"div", "divide", "true_divide"}
CONVOLUTIONS = {f"conv{kind}{d}d": d for kind in ("", "_transpose") for d in (1, 2, 3)}
FAMILIES = {
    **dict.fromkeys(FUNCTIONAL_ACTIVATIONS, "activation"),
    **dict.fromkeys(("softmax", "log_softmax", "gumbel_softmax", "softmin"), "softmax"),
    **dict.fromkeys(("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"), "dropout"),
    **dict.fromkeys(("layer_norm", "rms_norm", "group_norm", "instance_norm", "local_response_norm"), "norm"),
    **dict.fromkeys(("embedding", "embedding_bag"), "embedding"),
    **dict.fromkeys(("scaled_dot_product_attention", "multi_head_attention_forward"), "attention"),
    **dict.fromkeys((f"{cell}{end}" for cell in ("lstm", "gru", "rnn_tanh", "rnn_relu") for end in ("", "_cell")), "recurrent"),
    **dict.fromkeys((f"{kind}max_pool{d}d" for kind in ("", "adaptive_") for d in (1, 2, 3)), "pool"),
    **dict.fromkeys((f"{kind}avg_pool{d}d" for kind in ("", "adaptive_") for d in (1, 2, 3)), "average"),
    **dict.fromkeys(LOSSES, "loss"),
    "batch_norm": "batchnorm",
}
# Sizes that no two axes share, and that no part of another one has.
PRIMES = (101, 103, 107, 109, 113, 127, 131, 137)


@dataclass(frozen=True)
class Reading:
    family: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    axes: Axes | None = None


def plain_name(op: Op) -> str:
    """`__radd__`, `add_` and `add` are one; so are `F.relu(x, inplace=True)` and `relu`."""
    name = op.name
    if name.startswith("__") and name.endswith("__") and name != "__getitem__":
        name = name.strip("_").removeprefix("i") if name.strip("_") in ("iadd", "isub", "imul", "itruediv") else name.strip("_")
        name = {"radd": "add", "rmul": "mul", "truediv": "div", "matmul": "matmul", "rmatmul": "matmul"}.get(name, name)
    return name.rstrip("_") if name != "__getitem__" else name


def read(op: Op, data: list[torch.Tensor], weights: list[torch.Tensor], output: Any) -> Reading:
    """`data`: the tensors among its arguments that depend on the input; `weights`: those made of parameters alone."""
    name = plain_name(op)
    made = next((t for t in (output if isinstance(output, tuple | list) else (output,)) if is_tensor(t)), None)
    if made is None:
        return Reading("other")
    if name in ("linear", "matmul", "mm", "bmm", "addmm", "einsum") or name in CONVOLUTIONS:
        return _product(op, name, data, weights, made)
    if name in SCALES:
        return _elementwise(op, name, data, made)
    if len(data) == 1:
        axes = followed(op, name, data[0], made)
        if axes is not None:
            return Reading("average" if name in AVERAGES else "reshape", {}, axes)
    family = FAMILIES.get(name, "other")
    if family in ("batchnorm", "norm", "dropout"):
        return _bound(op, name, family, made)
    if family == "softmax":
        return Reading(family, {"axis": softmax_axis(op, name, made.dim())})
    return Reading(family, {}, _unchanged(made) if family == "average" else None)


def _unchanged(made: torch.Tensor) -> Axes:
    return tuple((i,) for i in range(made.dim()))


def _elementwise(op: Op, name: str, data: list[torch.Tensor], made: torch.Tensor) -> Reading:
    if len(data) > 1:
        return Reading("sum" if name in SUMS else "product")
    divided = name in DIVISIONS and (op.args[0] is not data[0] or op.name.startswith("__r"))
    if divided or data[0].shape != made.shape:
        return Reading("other")
    return Reading("scale", {}, _unchanged(made))


def followed(op: Op, name: str, source: torch.Tensor, made: torch.Tensor) -> Axes | None:
    """Where each axis goes; None for an operation that does more than move, cut out or average values."""
    if name in SAME:
        return _unchanged(made) if source.shape == made.shape else None
    if name in RESHAPES:
        return reshaped(source.shape, made.shape)
    if name not in MOVES | PARTS | AVERAGES or source.dim() > len(PRIMES) or not op.args:
        return None
    probe = torch.empty(PRIMES[: source.dim()], device="meta")
    method = getattr(torch.Tensor, name)
    try:
        moved = method(probe, *op.args[1:], **op.kwargs) if callable(method) else getattr(probe, name)
    except Exception:  # an index that does not fit the other shape, or one made of data
        return None
    moved = moved[0] if isinstance(moved, tuple | list) else moved
    if not is_tensor(moved) or moved.dim() != made.dim():
        return None
    return tuple((PRIMES.index(n),) if n in PRIMES else () for n in moved.shape)


def _product(op: Op, name: str, data: list[torch.Tensor], weights: list[torch.Tensor], made: torch.Tensor) -> Reading:
    if len(data) != 1:
        return Reading("product")
    if name == "addmm":
        left, right, bias = op.args[1], op.args[2], op.args[0]
    elif name in CONVOLUTIONS or name == "linear":
        given = _named(("input", "weight", "bias"), op)
        left, right, bias = given.get("input"), given.get("weight"), given.get("bias")
    elif name == "einsum":
        return _einsum(op, data[0], weights, made)
    else:
        pair = [a for a in (*op.args, *op.kwargs.values()) if is_tensor(a)][:2]
        left, right, bias = pair[0], pair[-1], None
    matrix = right if left is data[0] else left
    if not any(matrix is w for w in weights):
        return Reading("other")
    if name in CONVOLUTIONS:
        return Reading("conv", _convolution(op, CONVOLUTIONS[name], data[0], matrix, bias, "transpose" in name))
    if matrix.dim() != 2:
        return Reading("other")
    axis = data[0].dim() - (1 if left is data[0] else min(2, data[0].dim()))
    rows, columns = matrix.shape
    outward = name == "linear" or left is not data[0]
    sides = {"in": columns, "out": rows} if outward else {"in": rows, "out": columns}
    return Reading("linear", {**sides, "axis": axis, "out_axis": axis, "bias": is_tensor(bias)})


def _named(names: tuple[str, ...], op: Op) -> dict[str, Any]:
    return {**dict(zip(names, op.args, strict=False)), **op.kwargs}


def _convolution(
    op: Op, dimensions: int, source: torch.Tensor, weight: torch.Tensor, bias: Any, transposed: bool
) -> dict[str, Any]:
    order = ("input", "weight", "bias", "stride", "padding")
    given = _named((*order, "output_padding", "groups", "dilation") if transposed else (*order, "dilation", "groups"), op)
    groups = int(given.get("groups", 1))
    stride = given.get("stride", 1)
    first, second = weight.shape[0], weight.shape[1] * groups
    axis = source.dim() - dimensions - 1
    return {
        "in": first if transposed else second,
        "out": second if transposed else first,
        "axis": axis,
        "out_axis": axis,
        "bias": is_tensor(bias),
        "kernel": tuple(weight.shape[2:]),
        "groups": groups,
        "stride": tuple(stride) if isinstance(stride, tuple | list) else (int(stride),) * dimensions,
        "transposed": transposed,
    }


def _einsum(op: Op, data: torch.Tensor, weights: list[torch.Tensor], made: torch.Tensor) -> Reading:
    """`…d,de->…e` is a matrix product; anything richer is not looked into."""
    equation = op.args[0] if isinstance(op.args[0], str) else ""
    left, arrow, out = equation.replace(" ", "").partition("->")
    sides = left.split(",")
    operands = [a for a in op.args[1:] if is_tensor(a)]
    if not arrow or "." in left or len(sides) != 2 or len(operands) != 2 or len(weights) != 1 or weights[0].dim() != 2:
        return Reading("other")
    of_data, of_weight = sides if operands[0] is data else sides[::-1]
    shared = [letter for letter in of_weight if letter in of_data]
    fresh = [letter for letter in of_weight if letter not in of_data]
    if len(shared) != 1 or len(fresh) != 1 or shared[0] in out or fresh[0] not in out or len(set(of_data)) != len(of_data):
        return Reading("other")
    axis, out_axis = of_data.index(shared[0]), out.index(fresh[0])
    sizes = {"in": data.shape[axis], "out": made.shape[out_axis]}
    return Reading("linear", {**sizes, "axis": axis, "out_axis": out_axis, "bias": False})


def _bound(op: Op, name: str, family: str, made: torch.Tensor) -> Reading:
    try:
        given = dict(inspect.signature(getattr(nn.functional, name)).bind_partial(*op.args, **op.kwargs).arguments)
    except (TypeError, ValueError, AttributeError):  # the same operation by another way in: torch.dropout(x, p, train)
        given = _named(("input", "p", "training"), op) if family == "dropout" else {}
    if family == "dropout":
        active = bool(given.get("training", True))
        return Reading(family, {"p": float(given.get("p", 0.5)) if active else 0.0}, _unchanged(made))
    axes = _unchanged(made) if family == "batchnorm" else None
    return Reading(family, {"centres": 1} if _centres(name, given, made) else {}, axes)


def softmax_axis(op: Op, name: str, axes: int) -> int:
    place = 4 if name == "gumbel_softmax" else 1
    axis = op.kwargs.get("dim", op.args[place] if len(op.args) > place else None)
    if not isinstance(axis, int) or isinstance(axis, bool):
        # Where nobody names one, torch takes this.
        axis = -1 if name == "gumbel_softmax" else 0 if axes in (0, 1, 3) else 1
    return axis % axes if axes else 0


def _centres(name: str, given: Mapping[str, Any], made: torch.Tensor) -> bool:
    """Does it subtract the mean of each channel, as these very values have it?"""
    if name == "batch_norm":
        return bool(given.get("training", False)) or given.get("running_mean") is None
    if name == "instance_norm":
        return bool(given.get("use_input_stats", True)) and made.dim() > 2
    return name == "group_norm" and made.dim() > 2 and given.get("num_groups") == made.shape[1]
