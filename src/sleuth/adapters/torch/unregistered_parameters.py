"""Parameters at work inside the model that the model does not know: made in forward, or kept where torch does not look."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from sleuth.adapters.torch.pass_listener import Listener, Op, is_tensor
from sleuth.core.location import Location
from sleuth.core.observation import Stray
from sleuth.core.runtime.tree import leaves

# Ops, and the place of the weight among their arguments. A plain tensor that was made in this step and wants a gradient is a
# weight only there: as a first hidden state, or as an input whose gradient is looked at, it is nobody's business.
WEIGHT_AT = {
    "linear": 1,
    "conv1d": 1,
    "conv2d": 1,
    "conv3d": 1,
    "embedding": 1,
    "matmul": 1,
    "__matmul__": 1,
    "mm": 1,
    "addmm": 2,
}


@dataclass
class Unregistered:
    tensor: torch.Tensor
    first: Location | None  # the first op that touched it: its initialisation, or its first use
    fresh: bool  # its memory was made in this very step
    layer: str | None = None  # where it was at work; None: not in the model


class UnregisteredNotes:
    def __init__(self, listener: Listener, known: set[int], batch: Any) -> None:
        self._listener = listener
        self._known = known
        self._made = {_storage(t) for _, t in leaves(batch, is_tensor)}  # storages
        self._found: dict[int, Unregistered] = {}
        listener.on_op.append(self._op)

    def _op(self, op: Op, output: Any) -> None:
        given = [t for _, t in leaves((list(op.args), dict(op.kwargs)), is_tensor)]
        for tensor in given:
            if id(tensor) not in self._known and tensor.is_leaf and tensor.requires_grad and self._is_weight(op, tensor):
                self._meet(op, tensor)
        live = any(t.requires_grad for _, t in leaves(output, is_tensor))
        for tensor in given if live and torch.is_grad_enabled() and self._listener.inside else ():
            if (one := self._found.get(id(tensor))) is not None and one.layer is None:
                one.layer = op.layer
        self._made |= {_storage(t) for _, t in leaves(output, is_tensor) if id(t) not in op.inputs}

    def _is_weight(self, op: Op, tensor: torch.Tensor) -> bool:
        if isinstance(tensor, nn.Parameter) or _storage(tensor) not in self._made:
            return True
        at = WEIGHT_AT.get(op.name)
        return at is not None and len(op.args) > at and op.args[at] is tensor

    def _meet(self, op: Op, tensor: torch.Tensor) -> None:
        if id(tensor) not in self._found:
            self._found[id(tensor)] = Unregistered(tensor, op.location, _storage(tensor) in self._made)

    def strays(self, derived: set[int]) -> Iterator[Stray]:
        """One for each line that made or used some. `derived` come from the model's own parameters: fast weights, activations."""
        groups: dict[tuple[str, str], list[Unregistered]] = {}
        for one in self._found.values():
            if one.layer is not None and id(one.tensor) not in derived:
                groups.setdefault((str(one.first), "forward" if one.fresh else "elsewhere"), []).append(one)
        for (_, holder), members in groups.items():
            if holder == "forward" and all(_is_plain(m.tensor) for m in members):
                holder = "forward, plain"
            count = sum(m.tensor.numel() for m in members)
            yield Stray(members[0].layer or "", holder, count, members[0].first)


def _is_plain(tensor: torch.Tensor) -> bool:
    """Ones or zeros throughout, as normalisation starts with: made anew each time it computes the same."""
    return tensor.numel() > 0 and bool((tensor.detach() == tensor.detach().flatten()[0]).all())


def _storage(tensor: torch.Tensor) -> int:
    try:
        return int(tensor.untyped_storage().data_ptr()) or id(tensor)
    except (RuntimeError, NotImplementedError):  # sparse and meta tensors have none
        return id(tensor)
