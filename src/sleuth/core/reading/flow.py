"""Reading a forward pass: which operation hands its result to which, and where its features go."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from sleuth.core.trial import Flow, Operation

WEIGHTY = ("linear", "conv")
# Operations after which the values are still a linear function of what came in, once training is over.
LINEAR = ("reshape", "average", "scale", "dropout", "batchnorm")

Axes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Chain:
    """`first` feeds `last`, and nothing else, through the operations between them."""

    first: Operation
    between: tuple[Operation, ...]
    last: Operation

    def features(self) -> tuple[int, bool] | None:
        """The axis on which the features of `first` reach `last`, and whether others were joined to them on the way (as in a
        flatten); None when they cannot be followed or were torn apart."""
        axis, joined = self.first.settings.get("out_axis"), False
        for operation in self.between:
            if axis is None or operation.axes is None:
                return None
            found = [i for i, sources in enumerate(operation.axes) if axis in sources]
            if len(found) != 1:
                return None
            joined |= len(operation.axes[found[0]]) > 1
            axis = found[0]
        return None if axis is None else (axis, joined)


def users(flow: Flow) -> list[list[int]]:
    """For each operation, those that it feeds."""
    found: list[list[int]] = [[] for _ in flow.operations]
    for index, operation in enumerate(flow.operations):
        for source in set(operation.sources):
            found[source].append(index)
    return found


def chain_to(flow: Flow, index: int, through: Sequence[str], used: Sequence[Sequence[int]]) -> Chain | None:
    """Back from an operation, through those families alone, to the one that feeds it. None where a result on the way has another
    use too, or several things come together."""
    operations = flow.operations
    between: list[Operation] = []
    at = index
    while len(operations[at].sources) == 1:
        at = operations[at].sources[0]
        if len(used[at]) != 1 or operations[at].leaves:
            return None
        if operations[at].family not in through:
            return Chain(operations[at], tuple(reversed(between)), operations[index])
        between.append(operations[at])
    return None


def reshaped(before: Sequence[int], after: Sequence[int]) -> Axes | None:
    """Which axes of the old shape each axis of the new one is made of. An axis that was split appears several times."""
    axes: list[tuple[int, ...]] = []
    i = j = 0
    while j < len(after):
        if after[j] == 1 and (i == len(before) or before[i] != 1):
            axes.append(())
            j += 1
            continue
        if i < len(before) and before[i] == 1 and after[j] != 1:
            i += 1
            continue
        first, start = i, j
        old = new = 0
        while not old or old != new:
            if old <= new and i < len(before):
                old = (old or 1) * before[i]
                i += 1
            elif j < len(after):
                new = (new or 1) * after[j]
                j += 1
            else:
                return None
        axes += [tuple(range(first, i))] * (j - start)
    return tuple(axes)


def torn(flow: Flow, samples: int) -> Operation | None:
    """The first reshape of data that cuts across samples, which stand along the first axis until then."""
    first: set[int] = set()  # operations whose result has the samples, each as a whole, along its first axis
    for index, operation in enumerate(flow.operations):
        behind = [source for source in operation.sources if source in first]
        if operation.family == "input" or behind:
            if operation.shape[:1] == (samples,):
                first.add(index)
            elif len(behind) == 1 and _tears(flow.operations[behind[0]].shape, operation):
                return operation
    return None


def _tears(before: Sequence[int], operation: Operation) -> bool:
    """Does an axis that begins with the first one no longer end where one of its entries does?"""
    if operation.family != "reshape" or operation.axes is None:
        return False
    after, axes = operation.shape, operation.axes
    joined = next((sources for sources in axes if 0 in sources), ())
    if not joined or joined[0] != 0 or len(joined) < 2:  # gone, or moved as a whole
        return False
    made = [size for size, sources in zip(after, axes, strict=True) if sources == joined]
    ends = [prod(made[: n + 1]) for n in range(len(made))]
    return before[0] not in ends and made[0] % before[0] != 0


def fed_by(flow: Flow, index: int, through: Sequence[str]) -> int:
    """The first operation, from this one backwards, that is of another family than these."""
    while flow.operations[index].family in through and len(flow.operations[index].sources) == 1:
        index = flow.operations[index].sources[0]
    return index
