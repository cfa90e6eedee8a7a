"""Finds values again that were viewed, flattened, cut, shifted, masked or padded on their way: by the values themselves, so
that it works in every framework and whoever wrote the lines in between."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

# What losses leave out, unless they are told otherwise.
IGNORED = -100
# Of floats: the same number after a change of precision.
CLOSE = 1e-5
# Rows are looked for one by one only up to here.
MOST_ROWS = 200_000


def rows_in(whole: np.ndarray, part: np.ndarray, axes: int = 2) -> np.ndarray | None:
    """Of which row of `whole` each row of `part` is, where the first `axes` axes of `whole` count its rows, in their order.

    None: `part` is not made of rows of `whole` in their order.
    """
    shape, width = whole.shape[:axes], whole.shape[axes:]
    if len(shape) != axes or not part.ndim:
        return None
    numbers = np.arange(int(np.prod(shape))).reshape(shape)
    values = whole.reshape(-1, *width)
    for cut in _cuts(numbers):
        given = _in_rows(part, cut.shape, width)
        if given is not None and _same(values[cut.ravel()], given):
            return cut.ravel()
    return _picked(values, part) if part.shape[1:] == width and len(part) < len(values) else None


def _cuts(numbers: np.ndarray) -> Iterator[np.ndarray]:
    """Everything, or without its first or last along one axis; with the axes as they are, and exchanged."""
    yield numbers
    for axis in range(min(numbers.ndim, 2))[::-1]:
        if numbers.shape[axis] > 2:
            yield np.take(numbers, np.arange(numbers.shape[axis] - 1), axis)
            yield np.take(numbers, np.arange(1, numbers.shape[axis]), axis)
    if numbers.ndim == 2:
        yield numbers.T
        if numbers.shape[1] > 2:
            yield numbers[:, :-1].T
            yield numbers[:, 1:].T


def _in_rows(part: np.ndarray, shape: tuple[int, ...], width: tuple[int, ...]) -> np.ndarray | None:
    """`part` with its rows in front; the classes of a cross-entropy stand on axis 1."""
    if part.shape == (*shape, *width) or part.shape == (int(np.prod(shape)), *width):
        return part.reshape(-1, *width)
    if len(width) == 1 and part.ndim == len(shape) + 1 and np.moveaxis(part, 1, -1).shape == (*shape, *width):
        return np.moveaxis(part, 1, -1).reshape(-1, *width)
    return None


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    if one.dtype.kind == "f" or other.dtype.kind == "f":
        return bool(np.allclose(one, other, rtol=CLOSE, atol=CLOSE, equal_nan=True))
    return bool(np.array_equal(one, other))


def _picked(values: np.ndarray, part: np.ndarray) -> np.ndarray | None:
    """Rows picked by a mask: each is found behind the one before."""
    if not len(part) or len(values) > MOST_ROWS:
        return None
    places: dict[bytes, list[int]] = {}
    for number, row in enumerate(values.astype(part.dtype, copy=False)):
        places.setdefault(row.tobytes(), []).append(number)
    found, before = np.empty(len(part), dtype=int), -1
    for number, row in enumerate(part):
        following = [place for place in places.get(row.tobytes(), ()) if place > before]
        if not following:
            return None
        found[number] = before = following[0]
    return found


def made_of(part: np.ndarray, sources: Mapping[str, np.ndarray], ignored: Sequence[int] = (IGNORED,)) -> list[str]:
    """Which of the arrays `part` was made of by views, cuts, a shift, a mask or leaving out; the plainest way first."""
    fitting = {path: a for path, a in sources.items() if a.ndim and a.dtype.kind in "biuf" and a.size >= part.size // 2}
    ways = (_is_whole, _is_cut, _is_shifted, _is_masked)
    return [path for way in ways for path, a in fitting.items() if part.size and way(a, part, ignored)]


def _is_whole(source: np.ndarray, part: np.ndarray, ignored: Sequence[int]) -> bool:
    return source.size == part.size and _same(source.ravel(), part.ravel())


def _is_cut(source: np.ndarray, part: np.ndarray, ignored: Sequence[int]) -> bool:
    axes = min(source.ndim, 2)
    flat = source.reshape(*source.shape[:axes], -1)
    found = flat[..., 0] if flat.shape[-1] == 1 else flat
    rows = rows_in(found, part if part.ndim > 1 or found.ndim == axes else part.reshape(-1, *found.shape[axes:]), axes)
    return rows is not None and len(rows) > 1 and found.ndim == axes and part.ndim <= 2


def _is_shifted(source: np.ndarray, part: np.ndarray, ignored: Sequence[int]) -> bool:
    """By one along its last axis, where what has come in is left out."""
    if source.ndim != 2 or source.size != part.size or source.shape[1] < 3:
        return False
    laid = part.reshape(source.shape)
    return bool(np.isin(laid[:, -1], ignored).all()) and _same(laid[:, :-1], source[:, 1:])


def _is_masked(source: np.ndarray, part: np.ndarray, ignored: Sequence[int]) -> bool:
    """The same where the loss counts it."""
    if source.size != part.size or part.dtype.kind == "f":
        return False
    counted = ~np.isin(part.ravel(), ignored)
    return bool(counted.any() and not counted.all()) and _same(source.ravel()[counted], part.ravel()[counted])
