"""One batch on its way through a step: what the loss function was given, and what the model was given of it.

Arrays are held as they are until a look, or the end; then they become NumPy's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from sleuth.adapters.common.reservoir import MOST_BATCH_BYTES, MOST_FIRST_BYTES, Reservoir, rows_that_fit
from sleuth.adapters.mlx.arrays import is_any_array, values
from sleuth.core.contract.kept import Passed
from sleuth.core.runtime.tree import map_arrays
from sleuth.core.subject import Parts

PLAIN = (type(None), bool, int, float, str)


@dataclass(eq=False)
class Draft:
    step: int
    args: Any  # of the user's function; its models left out
    door: Any = None  # what the model was called with, in the form in which a probe calls it
    calls: int = 0  # of the model
    target: Any = None  # where it was heard
    parts: Parts | None = None  # when it is settled
    bytes: int = 0

    def settle(self, inputs: Any, target: Any, *, first: bool) -> None:
        try:
            self.parts = parts_of(inputs, target, first=first)
        except (ValueError, RuntimeError):  # it stands inside a function that was being compiled, and has no values
            self.parts = None
        self.args = self.door = self.target = None


def drafted(step: int, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Draft:
    held = (without_models(args), without_models(dict(kwargs)))
    return Draft(step, held, bytes=sum(min(a.nbytes, MOST_BATCH_BYTES) for _, a in arrays_by_path(held)))


def settled(reservoir: Reservoir[Draft]) -> list[Passed]:
    return [Passed(d.step, d.parts) for d in reservoir.items if d.parts is not None]


def without_models(tree: Any) -> Any:
    """With other arrays of the same values in the place of those that the user may write into."""
    if isinstance(tree, mx.array):
        return mx.array(tree)
    if isinstance(tree, np.ndarray):
        return tree.copy() if tree.nbytes <= MOST_FIRST_BYTES else None
    if isinstance(tree, nn.Module):
        return None
    if isinstance(tree, Mapping):
        return {key: without_models(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return tuple(without_models(value) for value in tree)
    return tree if isinstance(tree, PLAIN) else None


def inputs_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """In the form in which a probe calls the model with them; None where they hold more than arrays and plain values."""
    if not all(map(_is_plain, (*args, *kwargs.values()))) or not any(True for _ in arrays_by_path((args, dict(kwargs)))):
        return None
    if kwargs:
        return dict(kwargs) if not args else None
    return args[0] if len(args) == 1 and is_any_array(args[0]) else args


def arrays_by_path(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if is_any_array(tree):
        yield path, tree
    elif isinstance(tree, Mapping) and not isinstance(tree, nn.Module):
        for key, value in tree.items():
            yield from arrays_by_path(value, f"{path}.{key}")
    elif isinstance(tree, list | tuple):
        for number, value in enumerate(tree):
            yield from arrays_by_path(value, f"{path}.{number}")


def parts_of(inputs: Any, target: Any, *, first: bool) -> Parts | None:
    """In the host's memory; None: too large for a single sample."""
    arrays = [a for _, a in arrays_by_path((inputs, target))]
    rows = rows_that_fit(sum(a.nbytes for a in arrays), {a.shape[0] if a.ndim else 0 for a in arrays}, first=first)
    if rows == 0:
        return None
    given, wanted = map_arrays((inputs, target), lambda a: np.array(values(a if rows is None else a[:rows])), is_any_array)
    return Parts(given, wanted, (given, wanted))


def _is_plain(tree: Any) -> bool:
    if is_any_array(tree) or isinstance(tree, PLAIN):
        return True
    if isinstance(tree, nn.Module):
        return False
    if isinstance(tree, Mapping):
        return all(map(_is_plain, tree.values()))
    return isinstance(tree, list | tuple) and all(map(_is_plain, tree))
