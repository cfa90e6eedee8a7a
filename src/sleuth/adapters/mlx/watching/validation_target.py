"""The target of what a model is asked about, where no loss is computed of it: it stands beside the input in the user's variables.

`mx.mean(model(x_test).argmax(1) == y_test)` tells nobody what `y_test` is. But where the input stands in a variable, a part of a
tuple or an attribute, and one other array there has as many rows and is of the kind of training's targets, it is that.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

import mlx.core as mx
import numpy as np

from sleuth.adapters.mlx.arrays import has_values, is_any_array, values
from sleuth.core.runtime.place import is_users

# Fewer rows may be as many as anything else has by chance; and whoever asks for so few mostly asks what to do next.
LEAST_ROWS = 8
MOST_VARIABLES = 512
MOST_PARTS = 64
MOST_FRAMES = 3


@dataclass(frozen=True)
class Kind:
    """Of the targets that training is given. `loop`: where its steps are taken, `rows`: of its batches."""

    numbers: str
    form: tuple[int, ...]
    rows: int
    loop: CodeType | None = None

    def fits(self, thing: Any, rows: int) -> bool:
        if not is_any_array(thing) or thing.ndim != 1 + len(self.form) or thing.shape[0] != rows:
            return False
        return tuple(thing.shape[1:]) == self.form and numbers_of(thing) == self.numbers


def kind_of(target: Any, loop: CodeType | None) -> Kind | None:
    if not is_any_array(target) or not target.ndim:
        return None
    return Kind(numbers_of(target), tuple(target.shape[1:]), target.shape[0], loop)


def numbers_of(array: Any) -> str:
    name = str(array.dtype).removeprefix("mlx.core.")
    return "float" if "float" in name else "whole" if "int" in name else name


def target_beside(given: Any, frame: FrameType | None, kind: Kind) -> Any:
    """None where nothing, or more than one thing, may be it. The model may be asked by a function that is given its input alone:
    then whoever called that is looked at."""
    if given.shape[0] < LEAST_ROWS:
        return None
    for _ in range(MOST_FRAMES):
        while frame is not None and not is_users(frame.f_code.co_filename):
            frame = frame.f_back
        # In the loop's own variables the last batch of the training may still stand.
        if frame is None or (frame.f_code is kind.loop and given.shape[0] == kind.rows):
            return None
        found = _found(frame, given, kind)
        if found:
            return found[0] if len(found) == 1 else None
        frame = frame.f_back
    return None


def _found(frame: FrameType, given: Any, kind: Kind) -> list[Any]:
    for space in _spaces(frame):
        if any(_is_given(value, given) for value in space):
            found = {id(value): value for value in space if value is not given and kind.fits(value, given.shape[0])}
            return [value for value in found.values() if not _is_given(value, given)]
    return []


def _spaces(frame: FrameType) -> Iterator[list[Any]]:
    """Where things stand together: innermost first."""
    spaces = [frame.f_locals] if frame.f_locals is frame.f_globals else [frame.f_locals, frame.f_globals]
    for space in spaces:
        own = list(space.values())[:MOST_VARIABLES]
        yield [value for value in own if is_any_array(value)]
        for value in own:
            parts = _parts(value)
            if parts:
                yield parts


def _parts(thing: Any) -> list[Any]:
    if isinstance(thing, mx.array | np.ndarray | type | str):
        return []
    if isinstance(thing, Mapping | list | tuple):
        inner = list(thing.values() if isinstance(thing, Mapping) else thing) if len(thing) <= MOST_PARTS else []
    else:
        inner = list(vars(thing).values())[:MOST_PARTS] if hasattr(thing, "__dict__") and not callable(thing) else []
    return [value for value in inner if is_any_array(value)]


def _is_given(value: Any, given: Any) -> bool:
    """The very array, or the one of NumPy that it was made of."""
    if value is given:
        return True
    if not isinstance(value, np.ndarray) or value.shape != tuple(given.shape) or value.dtype.kind not in "biuf":
        return False
    if isinstance(given, mx.array) and not has_values(given):
        return False  # it is not computed yet: not made of NumPy's
    one, other = values(given[:1]), values(given[-1:])
    return bool(np.array_equal(one, value[:1].astype(one.dtype)) and np.array_equal(other, value[-1:].astype(one.dtype)))
