"""What one listened pass says about the signal: a Frame of all activations and Units of the activations."""

from collections.abc import Iterator, Sequence

import numpy as np

from sleuth import kernel
from sleuth.adapters.mlx.arrays import evaluated, values
from sleuth.adapters.mlx.pass_listener import Made
from sleuth.core.observation import Absent, Frame, Observation, Role, Units
from sleuth.core.reading.activation import pinned_share
from sleuth.core.statistics import merge

NO_ACTIVATION = "no layer and no function that the model calls is known as an activation (nn.relu, mx.tanh, …)"


def computed(made: Sequence[Made]) -> list[Made]:
    """Those that have values: what is made inside a compiled function has none."""
    return [m for m, known in zip(made, evaluated(m.array for m in made), strict=True) if known]


def activity(made: Sequence[Made], step: int) -> Iterator[Observation]:
    """Of passes that are computed. Repeated calls of a layer are merged."""
    rows: dict[str, np.ndarray] = {}
    for one, row in zip(made, kernel.measure([values(m.array) for m in made]), strict=True):
        rows[one.path] = merge(rows[one.path], row) if one.path in rows else row
    if rows:
        yield Frame(step, Role.ACTIVATION, tuple(rows), np.stack(list(rows.values())))
    found = [m for m in made if m.activation and m.family == "activation" and m.array.ndim >= 2]
    yield from (_units(m, step) for m in found)
    if made and not found:
        yield Absent(Units, NO_ACTIVATION)


def _units(made: Made, step: int) -> Units:
    """Features stand last in MLX, those of images too."""
    array = values(made.array)
    units = array.reshape(-1, array.shape[-1])
    return Units(
        step,
        made.path,
        "activation",
        made.activation,
        samples=array.shape[0],
        nonzero=np.count_nonzero(units, axis=0),
        min=units.min(axis=0),
        max=units.max(axis=0),
        pinned=pinned_share(made.activation, units),
    )
