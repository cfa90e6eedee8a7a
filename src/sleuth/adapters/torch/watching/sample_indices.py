"""Which samples of its data set a batch was made of, as the loader's sampler told."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import ReferenceType, ref

import torch
from torch.utils.data import Subset

from sleuth.core.runtime.tree import leaves

# Batches that may be under way between loader and model: a loop may fetch some in advance.
RECENT = 4


class Given(NamedTuple):
    """A batch that a loader gave. Nothing of it is kept alive."""

    positions: Any  # as the sampler drew them; None: not known
    tensors: list[ReferenceType[torch.Tensor]]
    iterator: ReferenceType[Any]


@dataclass(frozen=True)
class Samples:
    """`indices` in the data set that the loader was given, in the order of the batch; `behind` in the whole of which that is
    a part. Not `certain`: the batch was the last one of that size."""

    indices: tuple[int, ...]
    behind: tuple[int, ...] | None
    certain: bool


class Indices:
    def __init__(self) -> None:
        # By the id of an iterator: a weak reference to it, and what it drew by the number of the batch.
        self._drawn: dict[int, tuple[ReferenceType[Any], dict[int, Any]]] = {}
        self._given: deque[Given] = deque(maxlen=RECENT)

    def drew(self, iterator: Any, positions: Any) -> None:
        # A loader with workers counts what it sent to them, one without counts what it gave.
        own = iterator.__dict__
        place = own["_send_idx"] if "_send_idx" in own else own["_num_yielded"]
        known = self._drawn.get(id(iterator))
        # Workers that live on begin a new epoch with the same iterator.
        if known is None or place == 0 or known[0]() is not iterator:
            self._drawn = {key: entry for key, entry in self._drawn.items() if entry[0]() is not None}
            known = self._drawn[id(iterator)] = (ref(iterator), {})
        known[1][place] = positions

    def gave(self, iterator: Any, batch: Any) -> None:
        own = iterator.__dict__
        known = self._drawn.get(id(iterator))
        positions, mine = None, None
        if known is not None:
            mine, drawn = known
            positions = drawn.pop(own["_num_yielded"] - 1, None)
            if mine() is not iterator or not own.get("_in_order", True):
                positions = None
        self._given.append(Given(positions, [ref(t) for t in tensors_of(batch)], mine or ref(iterator)))

    def close(self) -> None:
        self._drawn.clear()
        self._given.clear()

    def given_for(self, inputs: Sequence[torch.Tensor]) -> tuple[Given, int | None] | None:
        """The batch that these inputs came from, and the row at which they begin; None: told by their size only."""
        for given in reversed(self._given):
            for mine in (t for r in given.tensors if (t := r()) is not None):
                for tensor in inputs:
                    row = _row_in(mine, tensor)
                    if row is not None:
                        drawn = _numbers(given.positions)
                        # Samples may lie along another axis than the first: sequences before batches.
                        fits = drawn is not None and mine.shape[0] == len(drawn)
                        return (given if fits else given._replace(positions=None)), row
        size = next((t.shape[0] for t in inputs if t.dim()), None)
        for given in reversed(self._given):
            drawn = _numbers(given.positions)
            if size is not None and drawn is not None and len(drawn) == size:
                return given, None
        return None


def samples_of(given: Given, row: int | None, size: int) -> Samples | None:
    numbers = _numbers(given.positions)
    if numbers is None:
        return None
    chosen = numbers[row or 0 : (row or 0) + size]
    if len(chosen) != size:
        return None
    return Samples(tuple(chosen), _behind(given.iterator(), chosen), row is not None)


def tensors_of(tree: Any) -> Iterable[torch.Tensor]:
    if type(tree) is list or type(tree) is tuple:
        for part in tree:
            if not isinstance(part, torch.Tensor):
                break
        else:
            return tree
    return [t for _, t in leaves(tree, lambda thing: isinstance(thing, torch.Tensor))]


def _row_in(whole: torch.Tensor, part: torch.Tensor) -> int | None:
    """At which row of `whole` the memory of `part` begins."""
    if part is whole:
        return 0
    if not (part.dim() and whole.dim() and part.numel() and whole.numel()) or part.dtype != whole.dtype:
        return None
    if part.device != whole.device or part.is_sparse or whole.is_sparse:
        return None
    if part.untyped_storage().data_ptr() != whole.untyped_storage().data_ptr():
        return None
    row, rest = divmod(int(part.storage_offset()) - int(whole.storage_offset()), max(whole.stride(0), 1))
    fits = rest == 0 and row >= 0 and row + part.shape[0] <= whole.shape[0]
    return row if fits else None


def _numbers(positions: Any) -> list[int] | None:
    if isinstance(positions, torch.Tensor):
        positions = positions.tolist()
    if not isinstance(positions, list | tuple) or not all(_is_number(p) for p in positions):
        return None
    return [int(p) for p in positions]


def _is_number(thing: Any) -> bool:
    return not isinstance(thing, bool) and hasattr(thing, "__index__")


def _behind(iterator: Any, chosen: list[int]) -> tuple[int, ...] | None:
    data = getattr(iterator, "_dataset", None)
    found = None
    while isinstance(data, Subset):
        found = [int(data.indices[i]) for i in (found or chosen)]
        data = data.dataset
    return None if found is None else tuple(found)
