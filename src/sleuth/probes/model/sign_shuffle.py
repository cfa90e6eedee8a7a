"""What weights do to the layer they belong to: the same weights with mixed signs, or made smaller, are the measure."""

from collections.abc import Iterable

import numpy as np

from sleuth.core.observation import Frame, Parameter, Role
from sleuth.core.statistics import Statistics
from sleuth.probes.lab.probe import Lab

# A model written by hand has few such matrices, and the first ones say enough.
MOST_MATRICES = 8
# By so much a matrix is made smaller, a power of two: products with it are rounded as before.
SMALLER = 8.0
# A bias that is added, or one sample that goes another way, is less than this part of it.
NEARLY = 0.1


def sign_gains(lab: Lab, parameters: Iterable[Parameter]) -> dict[str, float]:
    """How many times larger the output of a parameter's layer is than with the same numbers in random signs.

    That tells a sum over inputs from a scale, a table or a distance, whatever the layer is called: only there all positive
    weights pull the same way. Layers that were not heard are left out.
    """
    snapshot = lab.bench.snapshot()
    try:
        lab.bench.set_training(False)
        before = _sizes(lab)
        found = {}
        for parameter in [p for p in parameters if before.get(p.layer)][:MOST_MATRICES]:
            lab.tick()
            mixed = _mixed(lab, parameter)
            found[parameter.path] = before[parameter.layer] / mixed if mixed else 1.0
        return found
    finally:
        lab.bench.restore(snapshot)


def in_proportion(lab: Lab, parameters: Iterable[Parameter]) -> set[str]:
    """Paths of those whose layer gives an eighth when they are an eighth: matrices that what goes in is multiplied with."""
    snapshot = lab.bench.snapshot()
    try:
        lab.bench.set_training(False)
        before = _sizes(lab)
        found = set()
        for parameter in [p for p in parameters if before.get(p.layer)][:MOST_MATRICES]:
            lab.tick()
            values = lab.adapter.values(lab.bench.parameter(parameter.path))
            ratio = _changed(lab, parameter, values / SMALLER) / before[parameter.layer]
            if abs(ratio * SMALLER - 1) < NEARLY:
                found.add(parameter.path)
        return found
    finally:
        lab.bench.restore(snapshot)


def _mixed(lab: Lab, parameter: Parameter) -> float:
    values = lab.adapter.values(lab.bench.parameter(parameter.path))
    return _changed(lab, parameter, values * lab.rng.choice([-1.0, 1.0], values.shape))


def _changed(lab: Lab, parameter: Parameter, values: np.ndarray) -> float:
    """How large the output of its layer is with these values in the place of the parameter's."""
    before = lab.adapter.values(lab.bench.parameter(parameter.path)).copy()
    try:
        lab.bench.write(parameter.path, values)
        return _sizes(lab).get(parameter.layer, 0.0)
    finally:
        lab.bench.write(parameter.path, before)


def _sizes(lab: Lab) -> dict[str, float]:
    frames = [o for o in lab.bench.observe(lab.batch, 0) if isinstance(o, Frame) and o.role is Role.ACTIVATION]
    measured: dict[str, Statistics] = frames[0].statistics() if frames else {}
    return {path: s.rms for path, s in measured.items() if np.isfinite(s.rms) and s.all_finite}
