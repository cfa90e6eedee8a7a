"""Reading the graph that autograd built. Nodes are known by their sequence number, so nothing of the user's is kept alive.

What a node has saved is never touched: unpacking it may run a checkpointed forward once more.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import torch

# Between a loss function and the backward lie a few operations; a graph that is larger is not walked to its end.
MOST_NODES = 2048
# Nodes that move, select or round values without making new ones.
CARRIERS = (
    "View", "Reshape", "UnsafeView", "Squeeze", "Unsqueeze", "Permute", "Transpose", "T", "MT", "ToCopy", "Clamp", "ClampMin",
    "ClampMax", "Select", "Slice", "Index", "Expand", "Clone", "NanToNum", "Alias",
)  # fmt: skip
SQUASHERS = {
    "Softmax": "softmax", "LogSoftmax": "log_softmax", "Sigmoid": "sigmoid", "LogSigmoid": "logsigmoid", "Tanh": "tanh",
    "Relu": "relu", "Softplus": "softplus", "Hardsigmoid": "hardsigmoid",
}  # fmt: skip
HARD = {(-1.0, 1.0): "hardtanh", (0.0, 6.0): "relu6"}
# Negative axes come as C writes them.
WRAPPED = 1 << 64


@dataclass(frozen=True)
class Maker:
    """What squashed the values of a tensor, where that is the last thing done to them."""

    name: str
    axis: int | None  # of a softmax, counted from the front
    behind: str | None  # what squashed the values that it was given
    number: int = -1  # of its node


def number_of(tensor: Any) -> int | None:
    """Under this number the tensor's node is found again; None: it has no graph."""
    node = tensor.grad_fn if isinstance(tensor, torch.Tensor) else None
    return None if node is None else int(node._sequence_nr())


def found_behind(loss: torch.Tensor, numbers: Collection[int]) -> set[int]:
    """Which of these nodes the loss was made of. A node is older than those made of it: the walk ends at the oldest wanted."""
    found: set[int] = set()
    oldest = min(numbers, default=0)
    waiting, seen = [loss.grad_fn], set[int]()
    while waiting and len(seen) < MOST_NODES and len(found) < len(numbers):
        node = waiting.pop()
        number = oldest - 1 if node is None else node._sequence_nr()
        if node is None or number < oldest or number in seen:
            continue
        seen.add(number)
        if number in numbers:
            found.add(number)
        waiting += [following for following, _ in node.next_functions]
    return found


def maker_of(tensor: torch.Tensor) -> Maker | None:
    node = _behind_carriers(tensor.grad_fn)
    name = _squasher(node)
    if node is None or name is None:
        return None
    before = node.next_functions[0][0] if node.next_functions else None
    return Maker(name, _axis(node), _squasher(_behind_carriers(before)), int(node._sequence_nr()))


def _behind_carriers(node: Any) -> Any:
    for _ in range(MOST_NODES):
        if node is None or _kind(node) not in CARRIERS:
            break
        node = node.next_functions[0][0] if node.next_functions else None
    return node


def _kind(node: Any) -> str:
    return str(node.name()).partition("Backward")[0]


def _squasher(node: Any) -> str | None:
    if node is None:
        return None
    kind = _kind(node)
    if kind == "Hardtanh":
        return HARD.get((float(node._saved_min_val), float(node._saved_max_val)))
    return SQUASHERS.get(kind)


def _axis(node: Any) -> int | None:
    axis = getattr(node, "_saved_dim", None)
    if not isinstance(axis, int):
        return None
    axes = len(node._input_metadata[0].shape)
    axis = axis - WRAPPED if axis >= WRAPPED // 2 else axis
    return axis % axes if axes else None
