"""What the values that passed through a model say about its signal: one Frame of all, and the Units of its activations."""

from collections.abc import Iterator, Sequence

import numpy as np

from sleuth import kernel
from sleuth.core.observation import Frame, Role, Units
from sleuth.core.reading.activation import pinned_share
from sleuth.core.statistics import merge


def frame_of(step: int, made: Sequence[tuple[str, np.ndarray]]) -> Iterator[Frame]:
    """By path; repeated calls of a layer are merged. Of nothing there is no Frame."""
    rows: dict[str, np.ndarray] = {}
    for (path, _), row in zip(made, kernel.measure([values for _, values in made]), strict=True):
        rows[path] = merge(rows[path], row) if path in rows else row
    if rows:
        yield Frame(step, Role.ACTIVATION, tuple(rows), np.stack(list(rows.values())))


def units_of(step: int, path: str, activation: str, values: np.ndarray, axis: int = -1) -> Units:
    """`axis`: where the units stand, the channels of an image or the features of a row."""
    units = np.moveaxis(values, axis, -1).reshape(-1, values.shape[axis])
    return Units(
        step,
        path,
        "activation",
        activation,
        samples=values.shape[0],
        nonzero=np.count_nonzero(units, axis=0).astype(np.int32),
        min=units.min(axis=0),
        max=units.max(axis=0),
        pinned=pinned_share(activation, units),
    )


def usual_axis(values: np.ndarray) -> int:
    """Of arrays that nobody describes: channels of images stand first, features last."""
    return 1 if values.ndim >= 4 else values.ndim - 1
