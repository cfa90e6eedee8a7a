"""Where the batches come from that a model is given: which loader, which array, as far as that can be told."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import ReferenceType, ref

import torch
from torch.utils.data import IterableDataset

from sleuth.adapters.torch.watching.sample_indices import tensors_of

# Data sets and arrays that are remembered, by number only; a loop that makes them anew would go on for ever.
MOST_REMEMBERED = 64


class Source(NamedTuple):
    key: Any
    told: bool  # from others
    length: int | None = None  # samples in the data set behind
    epoch: int | None = None  # by a number of its own
    begins: bool = False  # the first batch of an epoch
    fresh: bool = False  # a loader has just given it, and nobody used it before


# Rows picked from an array, or whatever a generator makes.
COPIES = Source("copies", told=False)


class Sources:
    def __init__(self) -> None:
        self._sets: dict[int, _DataSet] = {}
        self._numbers = 0
        self._passes = 0  # that loaders have begun
        self._latest: tuple[Source, int] | None = None  # of the batch that came last and the step at which it did, until used
        self._source = COPIES
        self._batch: list[ReferenceType[torch.Tensor]] = []
        self._arrays: dict[int, ReferenceType[torch.Tensor]] = {}  # that were given, or rows of them, by address

    def gave(self, iterator: Any, batch: Any, step: int) -> None:
        data = self._set(iterator._dataset)
        begins = iterator._num_yielded <= 1
        if begins:
            self._passes += 1
            data.begun = self._passes
        self._source = Source(("loader", data.number), True, data.length, data.begun, begins, fresh=True)
        self._latest = self._source, step
        self._batch = [ref(t) for t in tensors_of(batch)]

    def of(self, given: Sequence[torch.Tensor], step: int) -> Source:
        latest, self._latest = self._latest, None
        # A loader's batch may go to another device first. Between two steps nobody fetches one and does not use it.
        if latest is not None and latest[1] == step:
            return self._source
        if any(r() is given[0] for r in self._batch):
            return self._source if latest is not None else self._source._replace(begins=False, fresh=False)
        first = given[0]
        if first.layout is not torch.strided:
            return COPIES
        # The array that it is, or is a part of. Whether that lasts shows when it is met again.
        whole = first if first._base is None else first._base
        address = whole.untyped_storage().data_ptr()
        known = self._arrays.get(address)
        if len(self._arrays) >= MOST_REMEMBERED:
            self._arrays.clear()
        self._arrays[address] = ref(whole)
        return Source(("array", address), told=True) if known is not None and known() is whole else COPIES

    def beside(self, given: Sequence[torch.Tensor]) -> torch.Tensor | None:
        """What a loader's batch holds beside the inputs: the target, most likely, where that is one array."""
        tensors = [t for r in self._batch if (t := r()) is not None]
        others = [t for t in tensors if all(t is not mine for mine in given)]
        fits = len(others) == 1 and len(tensors) == len(others) + len(given) and others[0].dim() > 0 and given[0].dim() > 0
        return others[0] if fits and len(others[0]) == len(given[0]) else None

    def _set(self, data: Any) -> "_DataSet":
        known = self._sets.get(id(data))
        if known is None or not known.is_of(data):
            if len(self._sets) >= MOST_REMEMBERED:
                self._sets.clear()
            self._numbers += 1
            known = self._sets[id(data)] = _DataSet(self._numbers, data)
        return known


class _DataSet:
    """Not kept alive: where another one comes to lie in its place, that is noticed."""

    def __init__(self, number: int, data: Any) -> None:
        self.number = number
        self.begun = 0  # the latest pass over it
        try:
            self._reference: ReferenceType[Any] | None = ref(data)
        except TypeError:  # a list
            self._reference = None
        try:
            self.length = None if isinstance(data, IterableDataset) else len(data)
        except Exception:  # the user's own method, and not every set has one
            self.length = None

    def is_of(self, data: Any) -> bool:
        return self._reference is None or self._reference() is data
