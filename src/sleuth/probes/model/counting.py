"""Counts what can be learned, and what there is to learn from."""

from collections.abc import Iterator

import numpy as np

from sleuth.core.contract.adapter import Describes
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation, Parameter
from sleuth.core.runtime.tree import leaves
from sleuth.core.stage import Stage
from sleuth.core.trial import Capacity
from sleuth.probes.lab.changed_inputs import input_arrays
from sleuth.probes.lab.probe import Lab, probe
from sleuth.probes.lab.samples import data_rows

# The largest singular value of a freshly drawn m×n matrix is σ(√m + √n) (Marchenko and Pastur 1967), and training adds larger
# ones. Of matrices smaller than this it may be a fifth more by chance.
OUTLYING = 1.25
LEAST_SIDE = 16
POWER_STEPS = 30
# The largest matrices hold nearly all parameters.
MATRICES = 8


@probe(title="Counting parameters and data", stage=Stage.MODEL, rank=6, emits=(Capacity,))
def counting(lab: Lab) -> Iterator[Observation]:
    if not isinstance(lab.adapter, Describes):
        raise Unsupported(f"the {lab.adapter.name} adapter cannot describe a model")
    trainable = set(lab.bench.paths())
    learned = [
        p
        for p in lab.architecture.parameters
        if p.path in trainable and p.optimised is not False and p.tied_to is None and p.family != "embedding"
    ]
    samples = lab.train.samples if lab.train.complete else _length(lab)
    numbers, inputs = _numbers(lab)
    yield Capacity(
        trainable=sum(p.size for p in learned),
        samples=samples,
        values=None if samples is None else samples * max(numbers, 1),
        trained=_looks_trained(lab, learned),
        input_numbers=inputs,
    )


def _length(lab: Lab) -> int | None:
    try:
        rows = data_rows(lab.subject.train, lab.adapter)
    except Exception:  # a data set of the user's own may refuse its length
        return None
    return None if rows is None else rows.count


def _numbers(lab: Lab) -> tuple[int, int]:
    """Of one sample: in its target, or in its input where there is no target; and in its input."""
    given = input_arrays(lab, lab.batch.inputs)
    size = next((len(v) for v in given.values() if v.ndim), 1) or 1
    inputs = sum(v.size for v in given.values()) // size
    target = sum(lab.adapter.values(a).size for _, a in leaves(lab.batch.target, lab.adapter.is_array)) // size
    return target or inputs, inputs


def _looks_trained(lab: Lab, learned: list[Parameter]) -> bool:
    """Do most of the large matrices have a direction that stands out, as no random matrix has?"""
    verdicts = []
    for parameter in sorted(learned, key=lambda p: -p.size)[:MATRICES]:
        values = np.asarray(lab.adapter.values(lab.bench.parameter(parameter.path)), dtype=np.float32)
        matrix = values.reshape(len(values), -1) if values.ndim > 1 else values.reshape(1, -1)
        if min(matrix.shape) >= LEAST_SIDE and matrix.std() > 0:
            usual = float(matrix.std()) * sum(side**0.5 for side in matrix.shape)
            verdicts.append(_largest_singular_value(lab, matrix) > OUTLYING * usual)
    return bool(verdicts) and 2 * sum(verdicts) > len(verdicts)


def _largest_singular_value(lab: Lab, matrix: np.ndarray) -> float:
    direction: np.ndarray = np.asarray(lab.rng.normal(size=matrix.shape[1]), dtype=np.float32)
    length = 0.0
    for _ in range(POWER_STEPS):
        direction = matrix.T @ (matrix @ (direction / np.linalg.norm(direction)))
        length = float(np.linalg.norm(direction))
        if length == 0:
            return 0.0
    return length**0.5
