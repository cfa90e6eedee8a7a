"""What one listened pass says about the signal: a Frame of all activations and Units of the activation layers."""

from collections.abc import Iterator

import numpy as np

from sleuth import kernel
from sleuth.adapters.common.manual_loop.made_values import Made
from sleuth.adapters.numpy.pass_listener import Listener, is_array
from sleuth.core.observation import Absent, Frame, Observation, Role, Units
from sleuth.core.reading.activation import pinned_share
from sleuth.core.runtime.tree import leaves
from sleuth.core.statistics import merge


def activity(listener: Listener, step: int) -> Iterator[Observation]:
    """One Frame of all activations, merged over repeated calls of a layer, and Units of the activations."""
    named = [(made.path, made.values) for made in listener.made]
    if not named:
        named = [(path or "output", a) for out in listener.outputs[:1] for path, a in leaves(out, is_array)]
    rows: dict[str, np.ndarray] = {}
    for (path, _), row in zip(named, kernel.measure([values for _, values in named]), strict=True):
        rows[path] = merge(rows[path], row) if path in rows else row
    if rows:
        yield Frame(step, Role.ACTIVATION, tuple(rows), np.stack(list(rows.values())))
    found = [made for made in listener.made if made.activation and made.family != "softmax" and made.values.ndim >= 2]
    yield from (_units(made, step) for made in found)
    if listener.outputs and not found:
        yield Absent(Units, "no layer and no function of the model is known as an activation (relu, sigmoid, tanh, …)")


def _units(made: Made, step: int) -> Units:
    axis = 1 if made.values.ndim >= 4 else made.values.ndim - 1
    units = np.moveaxis(made.values, axis, -1).reshape(-1, made.values.shape[axis])
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
