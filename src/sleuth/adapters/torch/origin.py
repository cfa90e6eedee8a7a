"""In which op NaN or Inf was born, from the ops of one listened step."""

from dataclasses import dataclass
from typing import Any

import torch

from sleuth.adapters.torch.pass_listener import Listener, Op, is_tensor
from sleuth.core.observation import Origin
from sleuth.core.runtime.tree import leaves

# Ops that write an Inf on purpose: a mask. Only what makes a NaN of it later is to blame.
FILLS = {
    "masked_fill", "masked_fill_", "full", "full_like", "new_full", "where", "fill_", "__setitem__", "tensor", "new_tensor",
    "generate_square_subsequent_mask", "masked_scatter", "index_fill", "index_fill_", "finfo",
}  # fmt: skip


@dataclass(frozen=True)
class Bad:
    """A tensor that is not finite. `op` is to blame; None: a mask, or it came in like that."""

    nans: int
    infs: int
    op: Op | None
    ranges: tuple[tuple[float, float], ...] = ()


class OriginNotes:
    """Looks at every result as soon as it exists: in-place ops may change it later."""

    def __init__(self, listener: Listener) -> None:
        self._bad: dict[int, Bad | None] = {}
        listener.on_op.append(self._op)

    def origin(self, tree: Any, step: int) -> Origin | None:
        """Who is to blame for what is not finite in `tree`."""
        for _, tensor in leaves(tree, is_tensor):
            bad = self._bad.get(id(tensor))
            if bad is not None and bad.op is not None:
                op = bad.op
                return Origin(step, op.name, "forward", op.layer or None, bad.ranges, op.location, bad.nans, bad.infs)
        return None

    def guilty(self, tree: Any) -> tuple[Op, tuple[tuple[float, float], ...]] | None:
        """The same as the op itself, with the ranges of what it was given."""
        for _, tensor in leaves(tree, is_tensor):
            bad = self._bad.get(id(tensor))
            if bad is not None and bad.op is not None:
                return bad.op, bad.ranges
        return None

    def _op(self, op: Op, output: Any) -> None:
        in_place = set(op.inputs) & set(op.outputs)
        given = [t for _, t in leaves((list(op.args), dict(op.kwargs)), is_tensor)]
        for tensor in given:
            # Batches and weights are met here first; an in-place op has already written over its own.
            if id(tensor) not in self._bad and id(tensor) not in in_place:
                self._bad[id(tensor)] = _look(tensor, None)
        before = [bad for t in given if (bad := self._bad.get(id(t))) is not None]
        for _, tensor in leaves(output, is_tensor):
            self._bad[id(tensor)] = _blame(_look(tensor, op), before, op, given)


def _look(tensor: torch.Tensor, op: Op | None) -> Bad | None:
    if tensor.is_meta or not tensor.is_floating_point() or not tensor.numel():
        return None
    values = tensor.detach()
    if bool(torch.isfinite(values).all()):
        return None
    return Bad(int(torch.isnan(values).sum()), int(torch.isinf(values).sum()), op)


def _blame(found: Bad | None, before: list[Bad], op: Op, given: list[torch.Tensor]) -> Bad | None:
    if found is None:
        return None
    nans = [b for b in before if b.nans]
    infs = [b for b in before if b.infs]
    if found.nans and nans:
        return Bad(found.nans, found.infs, nans[0].op, nans[0].ranges)
    guilty = next((b for b in infs if b.op is not None), None)
    if guilty is not None:
        return Bad(found.nans, found.infs, guilty.op, guilty.ranges)
    if (infs and not found.nans) or op.name in FILLS:
        return Bad(found.nans, found.infs, None)
    return Bad(found.nans, found.infs, op, tuple(_range(t) for t in given))


def _range(tensor: torch.Tensor) -> tuple[float, float]:
    values = tensor.detach()
    if values.is_meta:
        return 0.0, 0.0
    values = values[torch.isfinite(values)] if values.is_floating_point() else values
    return (float(values.min()), float(values.max())) if values.numel() and not values.is_complex() else (0.0, 0.0)
