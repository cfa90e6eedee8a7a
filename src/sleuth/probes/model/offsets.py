"""Where only biases, scales and single numbers learn: is what they shift and stretch worth it, or was it never trained?"""

from collections.abc import Iterator

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.core.observation import Architecture, Observation, Parameter
from sleuth.core.stage import Stage
from sleuth.core.trial import FrozenRest
from sleuth.probes.lab.probe import Lab, probe
from sleuth.probes.model.freshness import fans_of, table_draw, uniform_draw
from sleuth.probes.model.frozen_trunk import in_order_of_use, values_of

# Layers whose vectors are biases and scales.
LAYERS = ("linear", "conv", "recurrent", "attention", "norm", "batchnorm")
WEIGHTY = ("linear", "conv", "recurrent", "attention", "embedding")
# Fewer numbers may look like a draw by chance.
LEAST_NUMBERS = 256


@probe(title="Looking at what is left to learn", stage=Stage.MODEL, rank=3, emits=(FrozenRest,), needs=("forward",))
def offsets(lab: Lab) -> Iterator[Observation]:
    architecture: Architecture = lab.architecture
    learning = [p for p in architecture.parameters if p.trainable]
    weights = [p for p in architecture.parameters if p.family in WEIGHTY and len(p.shape) >= 2 and p.tied_to is None]
    if not learning or not weights or not all(_only_shifts(p) for p in learning):
        raise Unsupported("something learns beside biases, scales and single numbers")
    used = in_order_of_use(lab, weights)
    marks = {p: _mark(p, values_of(lab, p.path).astype(np.float64)) for p in used}
    # A table that was trained a little still looks drawn; where a layer beside it was trained, so was the table.
    if not all(marks.values()):
        marks = {p: "" if p.family == "embedding" else mark for p, mark in marks.items()}
    fresh = [p for p in used if marks[p]]
    yield FrozenRest(
        sum(p.size for p in learning),
        sum(p.size for p in used),
        fresh[-1].path if fresh else None,
        marks[fresh[-1]] if fresh else "",
    )


def _only_shifts(parameter: Parameter) -> bool:
    return parameter.size == 1 or (len(parameter.shape) == 1 and parameter.family in LAYERS)


def _mark(parameter: Parameter, values: np.ndarray) -> str:
    """What shows that no training ever touched it."""
    if parameter.size < LEAST_NUMBERS:
        return ""
    if parameter.family == "embedding":
        return "its rows are drawn at random, none like another" if table_draw(values) else ""
    # A normal draw has no ends, and what training adds to it is hard to see in a single layer.
    drawn = uniform_draw(values, fans_of(parameter.shape), half="16" in parameter.dtype)
    return "its values end exactly where a fresh draw ends" if drawn else ""
