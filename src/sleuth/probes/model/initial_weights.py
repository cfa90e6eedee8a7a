"""How each weight matrix looks before training, and whether equal units would ever become unequal."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from sleuth.core.observation import Layer, Observation, Parameter
from sleuth.core.stage import Stage
from sleuth.core.statistics import Statistics
from sleuth.core.trial import ParameterStart, StartFacts
from sleuth.probes.lab.probe import Lab, probe
from sleuth.probes.model.sign_shuffle import in_proportion, sign_gains
from sleuth.probes.model.symmetry import equal_rows, rows_of, still_equal

# std·√fan_in of matrices that nobody need look at twice.
USUAL = (0.1, 3.0)


@probe(title="Looking at the weights at the start", stage=Stage.MODEL, rank=3, emits=(ParameterStart,))
def start(lab: Lab) -> Iterator[Observation]:
    architecture = lab.architecture
    trainable = set(lab.bench.paths())
    layers = {layer.path: layer for layer in architecture.layers}
    trained = any(_was_trained(lab, p) for p in architecture.parameters if p.path in trainable)
    matrices = [p for p in architecture.parameters if p.path in trainable and _is_matrix(p)]
    facts = [_describe(lab, p, layers.get(p.layer), trained) for p in matrices]
    suspects = {f.path: _unit_axes(p, layers.get(p.layer)) for f, p in zip(facts, matrices, strict=True) if _suspect(f)}
    still: Mapping[str, int | None] = {}
    if suspects:
        still = still_equal(lab, suspects) if "backward" not in lab.failed else dict.fromkeys(suspects)
    gains, following = _sign_gains(lab, matrices, facts), _in_proportion(lab, matrices, facts)
    yield ParameterStart(
        tuple(
            replace(f, still_identical=still.get(f.path, 0), sign_gain=gains.get(f.path), in_proportion=f.path in following)
            for f in facts
        )
    )


def _is_matrix(parameter: Parameter) -> bool:
    """A bias may have several axes too, such as heads and features; it starts as zeros by custom."""
    return len(parameter.shape) >= 2 and parameter.size > 0 and not parameter.path.endswith("bias")


def _sign_gains(lab: Lab, matrices: list[Parameter], facts: list[StartFacts]) -> dict[str, float]:
    """Of layers that the user wrote: what a matrix is for can only be told by trying."""
    unclear = [p for p, f in zip(matrices, facts, strict=True) if f.family == "other" and f.all_positive and not f.all_equal]
    return sign_gains(lab, unclear) if unclear and "forward" not in lab.failed else {}


def _in_proportion(lab: Lab, matrices: list[Parameter], facts: list[StartFacts]) -> set[str]:
    """Of those whose scale is an unusual one, should they be what inputs are multiplied with."""
    unclear = [(p, f) for p, f in zip(matrices, facts, strict=True) if f.family == "other" and len(f.shape) == 2]
    odd = [p for p, f in unclear if not f.all_equal and not USUAL[0] < f.gain < USUAL[1]]
    return in_proportion(lab, odd) if odd and "forward" not in lab.failed else set()


def _was_trained(lab: Lab, parameter: Parameter) -> bool:
    """Scales of normalisation layers start out equal; unequal ones came with a checkpoint."""
    if parameter.family not in ("batchnorm", "norm") or len(parameter.shape) != 1 or not parameter.path.endswith("weight"):
        return False
    return bool(np.ptp(_values(lab, parameter.path)) > 0)


def _suspect(facts: StartFacts) -> bool:
    return facts.rows > 1 and (facts.all_equal or facts.identical_rows > 0)


def _values(lab: Lab, path: str) -> np.ndarray:
    return lab.adapter.values(lab.bench.parameter(path))


def _describe(lab: Lab, parameter: Parameter, layer: Layer | None, trained: bool) -> StartFacts:
    statistics = Statistics.from_row(lab.adapter.measure([lab.bench.parameter(parameter.path)])[0])
    axis = _unit_axis(parameter, layer)
    rows = rows_of(_values(lab, parameter.path), axis)
    constant = statistics.min == statistics.max
    return StartFacts(
        path=parameter.path,
        family=parameter.family,
        shape=parameter.shape,
        std=statistics.std,
        mean=statistics.mean,
        all_zero=statistics.zeros == statistics.count,
        all_equal=constant,
        all_positive=statistics.min > 0,
        identical_rows=0 if constant else int(equal_rows(rows, 0.0).sum()),
        rows=parameter.shape[axis],
        fan_in=parameter.size // parameter.shape[axis],
        trained=trained,
    )


def _unit_axis(parameter: Parameter, layer: Layer | None) -> int:
    """Units come first, unless the layer's width says that they come second (x @ W, transposed convolutions)."""
    out = layer.settings.get("out") if layer is not None else None
    second = parameter.family in ("linear", "conv", "other") and parameter.shape[0] != out and parameter.shape[1] == out
    return 1 if second else 0


def _unit_axes(parameter: Parameter, layer: Layer | None) -> tuple[int, ...]:
    """In a layer of the user's own a square may be read either way: what is multiplied with equal numbers along one of them
    gets gradients of its own, so that only equal units stay equal."""
    either = parameter.family == "other" and len(parameter.shape) == 2
    return (0, 1) if either else (_unit_axis(parameter, layer),)
