"""The operations of torch beneath a Keras model, each with the Keras layer that it ran in."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from sleuth.adapters.keras.pass_listener import Hearing
from sleuth.adapters.torch.origin import OriginNotes
from sleuth.adapters.torch.pass_listener import Listener, Op, is_tensor
from sleuth.core.observation import Origin
from sleuth.core.runtime.tree import leaves

CUTS = {"relu", "relu_", "relu6"}
# To these a zero is what breaks them; of a quotient it is the second that must not be one.
BROKEN_BY_ZERO = {"log", "log2", "log10", "reciprocal", "rsqrt", "pow", "__pow__", "logit"}
QUOTIENTS = {"div", "divide", "true_divide", "__truediv__"}
# They hand values on as they are.
MOVES = {
    "cat", "concat", "concatenate", "stack", "__getitem__", "select", "narrow", "split", "chunk", "unbind", "tensor_split",
    "reshape", "view", "flatten", "squeeze", "unsqueeze", "permute", "transpose", "swapaxes", "movedim", "expand", "to",
    "clone", "contiguous", "float", "type",
}  # fmt: skip
POSITIVE = (
    "Let it end above zero: softplus instead of relu, or a small constant that is added to it. A ReLU gives exactly 0 for every "
    "negative sum."
)


class OpListener(Listener):
    """Layers are Keras' own: they are no submodules that torch would list."""

    def __init__(self, hearing: Hearing) -> None:
        super().__init__(hearing.model)
        self._stack = hearing.stack

    @contextmanager
    def listening(self) -> Iterator["OpListener"]:
        with self:
            yield self


class Ops:
    def __init__(self, hearing: Hearing) -> None:
        self._hearing = hearing
        self.listener = OpListener(hearing)
        self._origins = OriginNotes(self.listener)

    @contextmanager
    def listening(self) -> Iterator[None]:
        with self.listener.listening():
            yield

    def origin(self, tree: Any, step: int) -> Origin | None:
        origin, guilty = self._origins.origin(tree, step), self._origins.guilty(tree)
        if origin is None or guilty is None:
            return origin
        cut = next((made for given in _zeros_that_break(guilty[0]) if (made := self._cut_off(given)) is not None), None)
        if cut is None:
            return origin
        layer = self._hearing._by_path.get(cut.layer)
        place = cut.location if layer is None else self._hearing.line_of(layer) or cut.location
        return replace(
            origin,
            operation="relu",
            inputs=(),
            layer=cut.layer or None,
            location=place,
            taken_by=origin.operation,
            advice=POSITIVE,
        )

    def _cut_off(self, tensor: torch.Tensor, depth: int = 8) -> Op | None:
        """The ReLU whose zeros these are, however they were moved since."""
        op = next((op for op in reversed(self.listener.ops) if id(tensor) in op.outputs and id(tensor) not in op.inputs), None)
        if op is None or op.name in CUTS or op.name not in MOVES or not depth:
            return op if op is not None and op.name in CUTS else None
        return next((made for given in _with_zeros(op) if (made := self._cut_off(given, depth - 1)) is not None), None)


def _zeros_that_break(op: Op) -> list[torch.Tensor]:
    name = op.name.rstrip("_") if not op.name.startswith("__") else op.name
    if name in QUOTIENTS:
        return [t for t in op.args[1:2] if is_tensor(t) and bool((t.detach() == 0).any())]
    return _with_zeros(op) if name in BROKEN_BY_ZERO else []


def _with_zeros(op: Op) -> list[torch.Tensor]:
    given = [t for _, t in leaves((list(op.args), dict(op.kwargs)), is_tensor)]
    return [t for t in given if t.is_floating_point() and not t.is_meta and bool((t.detach() == 0).any())]
