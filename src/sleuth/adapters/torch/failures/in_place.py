"""Which line changed a tensor that backward still needed: torch's message names only the tensor."""

import re
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import nn

from sleuth.adapters.torch.pass_listener import Listener, Op
from sleuth.core.observation import Failure

MESSAGE = re.compile(r"modified by an inplace operation: \[[\w.]+ \[([\d, ]*)\]\], which is output \d+ of (\w+)")
OPERATORS = {"__iadd__", "__isub__", "__imul__", "__itruediv__", "__idiv__", "__ipow__", "__setitem__", "__iand__", "__ior__"}


def name_the_line(failure: Failure, model: nn.Module, run: Callable[[], object]) -> Failure:
    """`run` computes the loss once more, listened to."""
    match = MESSAGE.search(failure.message)
    if match is None:
        return failure
    listener = Listener(model)
    with listener.listening():
        run()
    shape = tuple(int(n) for n in match[1].split(",") if n.strip())
    changed = [op for op in listener.ops if writes(op) and shape in _shapes(op)]
    makers = {i: op.name for op in listener.ops if not writes(op) for i in op.outputs}
    wanted = match[2].removesuffix("Backward0").lower()
    exact = [op for op in changed if makers.get(op.inputs[0], "").replace("_", "") == wanted]
    guilty = next(iter(exact or changed), None)
    if guilty is None:
        return failure
    return replace(failure, location=guilty.location, layer=guilty.layer or None)


def writes(op: Op) -> bool:
    return bool(op.inputs) and (op.name in OPERATORS or (op.name.endswith("_") and not op.name.startswith("_")))


def _shapes(op: Op) -> list[tuple[int, ...]]:
    """Of the tensor that is written, and of the one it is a view of."""
    target = op.args[0] if op.args else None
    if not isinstance(target, torch.Tensor):
        return []
    base = target._base
    return [tuple(target.shape)] + ([tuple(base.shape)] if base is not None else [])
