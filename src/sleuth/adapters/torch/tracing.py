"""One step done again, op by op, on a model that is ours: what each operation made, and where NaN or Inf was born."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from sleuth.adapters.torch.measuring import measure
from sleuth.adapters.torch.origin import OriginNotes
from sleuth.adapters.torch.pass_listener import Listener, Op, is_tensor
from sleuth.core.contract.scene import Operation
from sleuth.core.runtime.tree import leaves
from sleuth.core.statistics import Statistics

# A longer list says nothing more to a person, and a loop of a million operations must not fill the memory.
MOST_OPERATIONS = 20_000
# Attributes that are read, not computed.
SILENT = {
    "shape", "dtype", "device", "size", "dim", "grad", "requires_grad", "is_leaf", "grad_fn", "data", "is_cuda", "numel",
    "stride", "layout", "ndim", "names", "is_sparse", "is_nested", "requires_grad_", "__len__", "is_quantized", "is_mkldnn",
}  # fmt: skip


class TooLong(Exception):
    """The time for doing a step again ran out."""


class Trace:
    def __init__(self, model: nn.Module, seconds: float = float("inf")) -> None:
        self.listener = Listener(model)
        self.operations: list[Operation] = []
        self._origins = OriginNotes(self.listener)
        self._made: list[tuple[int, Op]] = []  # by the number that autograd gave the last node of an op
        self._deadline = time.monotonic() + seconds
        self._born: tuple[Op, Operation] | None = None
        self.listener.on_op.append(self._op)

    def _op(self, op: Op, output: Any) -> None:
        if time.monotonic() > self._deadline:
            raise TooLong
        tensors = [t for _, t in leaves(output, is_tensor)]
        if op.name in SILENT or not tensors:
            return
        for tensor in tensors:
            if tensor.grad_fn is not None:
                self._made.append((tensor.grad_fn._sequence_nr(), op))
        if len(self.operations) < MOST_OPERATIONS:
            self.operations.append(_operation(op, tensors[0]))

    def guilty(self, tree: Any) -> tuple[Op, tuple[tuple[float, float], ...]] | None:
        """The op that is to blame for what is not finite in `tree`, and the ranges of what it was given."""
        return self._origins.guilty(tree)

    def described(self, op: Op) -> Operation:
        return _operation(op, self.tensors(op)[0])

    def tensors(self, op: Op) -> list[torch.Tensor]:
        """What an op made."""
        return [t for t in self.listener.alive if id(t) in op.outputs]

    def gradients(self, loss: torch.Tensor, sources: Sequence[torch.Tensor]) -> list[torch.Tensor | None]:
        """Of the loss with respect to the sources; the first op whose gradient is not finite is kept as `born_backward`."""
        nodes = [node for node in _nodes(loss.grad_fn)]
        hooks = [node.register_hook(self._listen(node)) for node in nodes]
        try:
            return list(torch.autograd.grad(loss, list(sources), allow_unused=True))
        finally:
            for hook in hooks:
                hook.remove()

    @property
    def born_backward(self) -> tuple[Op, Operation] | None:
        return self._born

    def _listen(self, node: Any) -> Callable[..., None]:
        def listen(given_back: Sequence[torch.Tensor | None], came: Sequence[torch.Tensor | None]) -> None:
            if self._born is None and not _all_finite(came):
                return
            bad = next((g for g in given_back if g is not None and not bool(torch.isfinite(g).all())), None)
            if self._born is None and bad is not None:
                op = self._op_of(node)
                if op is not None:
                    self._born = op, _operation(op, bad, "backward", node.name())

        return listen

    def _op_of(self, node: Any) -> Op | None:
        number = node._sequence_nr()
        later = [(last, op) for last, op in self._made if last >= number]
        return min(later, key=lambda pair: pair[0])[1] if later else None


def _all_finite(tensors: Sequence[torch.Tensor | None]) -> bool:
    return all(t is None or bool(torch.isfinite(t).all()) for t in tensors)


def _operation(op: Op, tensor: torch.Tensor, direction: str = "forward", name: str | None = None) -> Operation:
    found = Statistics.from_row(measure([tensor.detach()])[0])
    low, high = (found.min, found.max) if found.finite else (None, None)
    return Operation(
        name or op.name, op.layer, op.location, tuple(tensor.shape), low, high, found.nans, found.infs, direction
    )  # fmt: skip


def _nodes(root: Any) -> Iterator[Any]:
    seen, waiting = set(), [root]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen or not hasattr(node, "_sequence_nr"):
            continue
        seen.add(node)
        yield node
        waiting += [following for following, _ in node.next_functions]


def call(model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The user's model at work: what is below this line of the stack is the user's."""
    return model(*args, **kwargs)
