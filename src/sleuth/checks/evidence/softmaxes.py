"""Softmaxes inside a model: over which axis each of them runs, and what lies along it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sleuth.core.reading.flow import users
from sleuth.core.trial import Flow, Operation

# They change the values and leave each of them where it is.
IN_PLACE = ("scale", "dropout", "activation")
HANDED_ON = ("reshape", "dropout")
MATRIX_PRODUCTS = ("matmul", "__matmul__", "__rmatmul__", "bmm", "mm", "einsum", "baddbmm")
MASKS = ("masked_fill", "masked_fill_", "where", "clamp")


@dataclass(frozen=True)
class Softmax:
    flow: Flow
    index: int
    axis: int

    @property
    def operation(self) -> Operation:
        return self.flow.operations[self.index]

    @property
    def length(self) -> int:
        return self.operation.shape[self.axis]


def softmaxes(flow: Flow) -> Iterator[Softmax]:
    """Of the model; those of the loss behind it are seen there."""
    last = max(flow.outputs, default=len(flow.operations) - 1)
    for index, operation in enumerate(flow.operations[: last + 1]):
        axis = operation.settings.get("axis")
        if operation.family == "softmax" and isinstance(axis, int) and axis < len(operation.shape):
            yield Softmax(flow, index, axis)


def features_of(softmax: Softmax) -> int | None:
    """How many units the layer has whose answers lie along the axis; None: it is another axis, or cannot be told."""
    operations, axis = softmax.flow.operations, softmax.axis
    at = softmax.operation
    while at.sources:
        at = operations[at.sources[0]]
        if at.family in ("linear", "conv"):
            return at.settings.get("out") if at.settings.get("out_axis") == axis else None
        if at.family in IN_PLACE or at.name in MASKS:
            continue
        if at.family != "reshape" or at.axes is None or axis >= len(at.axes) or len(at.axes[axis]) != 1:
            return None
        axis = at.axes[axis][0]
    return None


def downstream(softmax: Softmax, through: Sequence[str] | None = None) -> list[int]:
    """All that is computed from its answer, or by way of these families alone."""
    used, operations = users(softmax.flow), softmax.flow.operations
    ahead = list(used[softmax.index])
    for at in ahead:  # grows while it is walked
        if through is None or operations[at].family in through:
            ahead += [i for i in used[at] if i not in ahead]
    return ahead


def has_complement(softmax: Softmax) -> bool:
    """Is one minus its answer made use of?"""
    operations = softmax.flow.operations
    return any(operations[i].name in ("__rsub__", "rsub") for i in downstream(softmax, HANDED_ON))


def summed_over(softmax: Softmax) -> int | None:
    """The axis over which what it weighs is summed up, where that is not the softmax's own."""
    operations, shape = softmax.flow.operations, softmax.operation.shape
    used = users(softmax.flow)
    for at in downstream(softmax, HANDED_ON):
        product = operations[at]
        if product.family != "product":
            continue
        if product.name in MATRIX_PRODUCTS:
            gone = [a for a, n in enumerate(shape) if n > 1 and n not in product.shape]
        else:
            gone = _averaged(product, [operations[i] for i in used[at]]) if len(product.shape) == len(shape) else []
        if gone and softmax.axis not in gone:
            return gone[0]
    return None


def _averaged(operation: Operation, by: Sequence[Operation]) -> list[int]:
    for average in by:
        if average.family == "average" and average.axes is not None:
            kept = {axis for axes in average.axes for axis in axes}
            return [axis for axis, size in enumerate(operation.shape) if axis not in kept and size > 1]
    return []
