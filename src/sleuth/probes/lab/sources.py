"""Turning what the user gave as data into batches that can be read more than once."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from sleuth.core.contract.adapter import Adapter
from sleuth.core.errors import UnusableInput
from sleuth.core.runtime.tree import leaves, map_arrays, taken
from sleuth.core.words import kind_of

BATCH_SIZE = 32
WANTED = "a loader, a dataset, a list of batches or arrays (X, y)"


@dataclass(frozen=True)
class Source:
    batches: Iterable[Any]
    order_is_ours: bool = False


class ArrayBatches:
    """Batches of arrays `(X, y)` in an order that is drawn anew, and the same way, at each pass."""

    def __init__(self, arrays: tuple[Any, ...], batch_size: int, names: tuple[str, ...] = ()) -> None:
        self._arrays = arrays
        self.batch_size = batch_size
        self._names = names

    def __len__(self) -> int:
        return -(-len(self._arrays[0]) // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        order = np.random.default_rng(0).permutation(len(self._arrays[0]))
        for start in range(0, len(order), self.batch_size):
            rows = order[start : start + self.batch_size]
            batch = tuple(taken(array, rows) for array in self._arrays)
            yield dict(zip(self._names, batch, strict=True)) if self._names else batch


class TreeBatches:
    """The same of inputs or targets that are several, as Keras takes them: `(x, {"kind": y, "size": z})`."""

    def __init__(self, tree: Any, arrays: tuple[Any, ...], batch_size: int) -> None:
        self._tree, self._known = tree, {id(array) for array in arrays}
        self._rows = ArrayBatches((np.arange(len(arrays[0])),), batch_size)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Any]:
        for (rows,) in self._rows:
            yield map_arrays(self._tree, partial(taken, rows=rows), lambda thing: id(thing) in self._known)


def whole_batches(arrays: Any, size: int) -> list[Any]:
    """As many as there are, for a model that takes batches of one size only."""
    batches = ArrayBatches(arrays if isinstance(arrays, tuple) else (arrays,), size)
    return [batch for batch in batches if len(batch[0]) == size]


def open_source(given: Any, adapter: Adapter, name: str) -> Source:
    if given is None:
        raise UnusableInput(f"{name} is None; give {WANTED}.")
    if hasattr(given, "__next__"):
        raise UnusableInput(
            f"{name} is {kind_of(given)}, which can be read only once. Give what makes it: the DataLoader "
            "itself instead of iter(loader), or list(batches)."
        )
    if _holds_arrays(given, adapter):
        return _from_arrays(tuple(given), name)
    if _holds_trees(given, adapter):
        return _from_trees(given, adapter, name)
    if isinstance(given, Mapping) and given and all(adapter.is_array(a) for a in given.values()):
        return _from_arrays(tuple(given.values()), name, tuple(given))
    own = adapter.batches(given, BATCH_SIZE)
    if own is not None:
        return Source(own, order_is_ours=True)
    if adapter.is_array(given):
        return _from_arrays((given,), name)
    if hasattr(given, "to_numpy"):
        raise UnusableInput(f"{name} is {kind_of(given)}; give arrays: ({name}[columns].to_numpy(), {name}[target].to_numpy()).")
    if isinstance(given, str | bytes | Mapping) or not hasattr(given, "__iter__"):
        raise UnusableInput(f"{name} is {kind_of(given)}, which yields no batches; give {WANTED}.")
    return Source(given)


def _holds_arrays(given: Any, adapter: Adapter) -> bool:
    """Is this `(X, y)`? A longer list of equally shaped arrays is a list of batches without targets."""
    if not isinstance(given, tuple | list) or len(given) < 2 or not all(adapter.is_array(a) for a in given):
        return False
    return isinstance(given, tuple) or len(given) == 2 or len({tuple(a.shape) for a in given}) > 1


def _holds_trees(given: Any, adapter: Adapter) -> bool:
    """Is this inputs and targets, one of them of several arrays? Two of a kind may be two batches."""
    if not isinstance(given, tuple) or len(given) != 2 or hasattr(given, "_fields"):
        return False
    named = sum(isinstance(part, Mapping) for part in given)
    arrays = sum(adapter.is_array(part) for part in given)
    other = given[0] if not adapter.is_array(given[0]) else given[1]
    several = isinstance(other, list | tuple | Mapping) and len(list(leaves(other, adapter.is_array))) == len(other) > 0
    return (arrays == 1 and several) or (named == 2 and set(given[0]) != set(given[1]))


def _from_trees(given: tuple[Any, Any], adapter: Adapter, name: str) -> Source:
    arrays = tuple(array for _, array in leaves(given, adapter.is_array))
    source = _from_arrays(arrays, name)  # says what does not fit
    assert isinstance(source.batches, ArrayBatches)
    return Source(TreeBatches(given, arrays, source.batches.batch_size), order_is_ours=True)


def _from_arrays(arrays: tuple[Any, ...], name: str, names: tuple[str, ...] = ()) -> Source:
    lengths = [a.shape[0] if len(a.shape) else 0 for a in arrays]
    if len(set(lengths)) != 1:
        shapes = ", ".join(str(tuple(a.shape)) for a in arrays)
        raise UnusableInput(
            f"the arrays of {name} differ in their number of samples: {shapes}; the first axis must be the same. "
            "A list of batches is a list of pairs: [(x1, y1), (x2, y2), …]."
        )
    if lengths[0] == 0:
        raise UnusableInput(f"{name} has no samples.")
    return Source(ArrayBatches(arrays, min(BATCH_SIZE, lengths[0]), names), order_is_ours=True)
