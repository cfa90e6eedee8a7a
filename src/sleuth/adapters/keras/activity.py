"""What one listened pass says about the signal: a Frame of all activations and Units of the activations."""

from collections.abc import Iterator, Sequence

import numpy as np

from sleuth import kernel
from sleuth.adapters.keras.pass_listener import Made
from sleuth.core.observation import Absent, Frame, Observation, Role, Units
from sleuth.core.reading.activation import pinned_share
from sleuth.core.statistics import merge

NO_ACTIVATION = "no layer and no function that the model calls is known as an activation (relu, sigmoid, tanh, …)"


def activity(made: Sequence[Made], step: int) -> Iterator[Observation]:
    """Repeated calls of a layer are merged."""
    rows: dict[str, np.ndarray] = {}
    for one, row in zip(made, kernel.measure([m.values for m in made]), strict=True):
        rows[one.path] = merge(rows[one.path], row) if one.path in rows else row
    if rows:
        yield Frame(step, Role.ACTIVATION, tuple(rows), np.stack(list(rows.values())))
    found = [m for m in made if m.family == "activation" and m.activation and m.values.ndim >= 2]
    yield from (_units(m, step) for m in found)
    if made and not found:
        yield Absent(Units, NO_ACTIVATION)


def _units(made: Made, step: int) -> Units:
    units = np.moveaxis(made.values, made.unit_axis, -1).reshape(-1, made.values.shape[made.unit_axis])
    return Units(
        step,
        made.path,
        "activation",
        made.activation,
        samples=made.values.shape[0],
        nonzero=np.count_nonzero(units, axis=0),
        min=units.min(axis=0),
        max=units.max(axis=0),
        pinned=pinned_share(made.activation, units),
    )
