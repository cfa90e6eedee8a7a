"""Where the axis of the samples got lost, from the ops that ran before the loss refused the output."""

import math

import torch

from sleuth.adapters.torch.failures.scene import Scene, sides
from sleuth.adapters.torch.pass_listener import Op
from sleuth.core.location import Location

RESHAPES = {"view", "reshape", "flatten"}
REDUCTIONS = {"mean", "sum", "amax", "squeeze", "logsumexp"}


def lost_at(scene: Scene, rows: int) -> tuple[Location | None, str] | None:
    """The line that turned `rows` samples into another number, and what to write there."""
    made = {id(t): t for op in scene.ops for t in op.args if isinstance(t, torch.Tensor)}
    made |= {id(t): t for t in (scene.input, *scene.operands) if isinstance(t, torch.Tensor)}
    # The last one decides what the loss saw.
    for op in reversed(scene.ops):
        before, after = _sides(op, made)
        if before is None or after is None or before.dim() < 2 or before.shape[0] != rows or after.shape[:1] == (rows,):
            continue
        turned = f"{op.name} turns {sides(before.shape)} into {sides(after.shape)}"
        return op.location, _cure(op, turned, before, after)
    return None


def _sides(op: Op, made: dict[int, torch.Tensor]) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    if op.name not in RESHAPES | REDUCTIONS or len(op.outputs) != 1 or not op.args:
        return None, None
    before = op.args[0]
    return (before if isinstance(before, torch.Tensor) else None), made.get(op.outputs[0])


def _cure(op: Op, turned: str, before: torch.Tensor, after: torch.Tensor) -> str:
    if op.name in REDUCTIONS:
        return f"leave axis 0, the samples, alone: {turned}; write {op.name}(dim=1)"
    if after.dim() == 1:
        return f"keep the samples apart: {turned}; write x.flatten(1)"
    inputs = math.prod(before.shape[1:])
    return f"keep the samples apart: {turned}; write x.reshape(x.shape[0], -1) and give the next layer {inputs} inputs"
