"""How each weight matrix looks before training, and whether equal units would ever become unequal."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from sleuth.core.adapter import Describes
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Layer, Observation, Parameter
from sleuth.core.stage import Stage
from sleuth.core.statistics import Statistics
from sleuth.core.trial import ParameterStart, StartFacts
from sleuth.probes.probe import Lab, probe

# Where several matrices start at zero on purpose (Fixup, adaLN-zero), the gradient arrives one matrix further at each step.
STEPS = 6
# Each step moves a matrix by this share of its size: enough to tell rows apart, too little to break anything.
STEP_SHARE = 0.05
SMALLEST_SIZE = 0.01
# Equal units get equal gradients up to the order of summation.
ROUNDING = 1e-4
HALF_ROUNDING = 2e-2
# The same sum over equal numbers may differ this much, relatively, where blocks end.
SUMMATION = 1e-12
# Beyond this many units the rest would tell nothing new.
MOST_ROWS = 4096


@probe(title="Looking at the weights at the start", stage=Stage.MODEL, rank=3, emits=(ParameterStart,))
def start(lab: Lab) -> Iterator[Observation]:
    if not isinstance(lab.adapter, Describes):
        raise Unsupported(f"the {lab.adapter.name} adapter cannot describe a model")
    architecture = lab.adapter.architecture(lab.subject)
    trainable = set(lab.bench.paths())
    layers = {layer.path: layer for layer in architecture.layers}
    trained = any(_was_trained(lab, p) for p in architecture.parameters if p.path in trainable)
    matrices = [p for p in architecture.parameters if p.path in trainable and len(p.shape) >= 2 and p.size]
    facts = [_describe(lab, p, layers.get(p.layer), trained) for p in matrices]
    suspects = {f.path: _unit_axis(p, layers.get(p.layer)) for f, p in zip(facts, matrices, strict=True) if _suspect(f)}
    still: Mapping[str, int | None] = {}
    if suspects:
        still = _after_steps(lab, suspects) if "backward" not in lab.failed else dict.fromkeys(suspects)
    yield ParameterStart(tuple(replace(f, still_identical=still.get(f.path, 0)) for f in facts))


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
    rows = _rows(_values(lab, parameter.path), axis)
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
        identical_rows=0 if constant else int(_equal_rows(rows, 0.0).sum()),
        rows=parameter.shape[axis],
        fan_in=parameter.size // parameter.shape[axis],
        trained=trained,
    )


def _unit_axis(parameter: Parameter, layer: Layer | None) -> int:
    """Units come first, unless the layer's width says that they come second (x @ W, transposed convolutions)."""
    out = layer.settings.get("out") if layer is not None else None
    second = parameter.family in ("linear", "conv") and parameter.shape[0] != out and parameter.shape[1] == out
    return 1 if second else 0


def _rows(values: np.ndarray, axis: int) -> np.ndarray:
    first = np.moveaxis(values, axis, 0)[:MOST_ROWS]
    return first.reshape(len(first), -1).astype(np.float64)


def _equal_rows(rows: np.ndarray, tolerance: float) -> np.ndarray:
    """Which rows equal another one: neighbours along one random direction that also agree along a second."""
    directions = np.random.default_rng(0).normal(size=(rows.shape[1], 2))
    along = rows @ directions
    order = np.argsort(along[:, 0], kind="stable")
    tolerance = max(tolerance, SUMMATION * float(np.abs(rows).max(initial=0.0))) * np.sqrt(rows.shape[1])
    same = (np.abs(np.diff(along[order], axis=0)) <= tolerance).all(axis=1)
    equal = np.zeros(len(rows), dtype=bool)
    equal[order[1:][same]] = True
    equal[order[:-1][same]] = True
    return equal


def _after_steps(lab: Lab, suspects: Mapping[str, int]) -> dict[str, int | None]:
    """Rows that were equal and still are after a few steps of plain descent, without dropout's dice.

    Not the user's optimiser: a rate of zero or a warm-up must not look like symmetry.
    """
    snapshot = lab.bench.snapshot()
    before = {path: _values(lab, path).copy() for path in suspects}
    reached: set[str] = set()
    try:
        lab.bench.set_training(False)
        for step in range(STEPS):
            lab.tick()
            gradients = lab.bench.gradients(lab.train.batches[step % len(lab.train.batches)]).by_path
            reached |= {path for path in suspects if gradients.get(path) is not None}
            for path, gradient in gradients.items():
                if gradient is not None:
                    _descend(lab, path, lab.adapter.values(gradient))
        # What the loss does not reach is the business of disconnected-parameters.
        return {path: _still(lab, path, before[path], axis) if path in reached else 0 for path, axis in suspects.items()}
    finally:
        lab.bench.restore(snapshot)


def _descend(lab: Lab, path: str, gradient: np.ndarray) -> None:
    values = _values(lab, path).astype(np.float64)
    gradient = gradient.astype(np.float64)
    size = float(np.sqrt(np.mean(gradient**2))) if gradient.size else 0.0
    if size > 0 and np.isfinite(size):
        reach = STEP_SHARE * max(float(np.sqrt(np.mean(values**2))), SMALLEST_SIZE)
        lab.bench.write(path, values - reach * gradient / size)


def _still(lab: Lab, path: str, before: np.ndarray, axis: int) -> int:
    after = _values(lab, path)
    moved = float(np.sqrt(np.mean((after.astype(np.float64) - before) ** 2)))
    rounding = HALF_ROUNDING if lab.adapter.dtype(lab.bench.parameter(path)) in ("float16", "bfloat16") else ROUNDING
    first, last = _rows(before, axis), _rows(after, axis)
    both = _equal_rows(first, 0.0) & _equal_rows(last, rounding * moved)
    if moved > 0:  # a table of positions, say: rows that no sample used stay as they were, and that is no symmetry
        both &= (first != last).any(axis=1)
    return int(both.sum())
