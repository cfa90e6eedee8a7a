"""A model that grows layer by layer: after each layer, what comes out, and how much of the target can still be read off it.

Asked for by `examine(prefixes=True)`; a fact of the report, and no check's.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from sleuth.core.contract.adapter import LayerValues
from sleuth.core.contract.workload import Heard
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.stage import Stage
from sleuth.probes.lab.probe import Lab, probe
from sleuth.probes.lab.samples import join
from sleuth.probes.learners.scoring import Task, task_of

# The readings are about two digits good with so many samples, and take no time.
MOST_SAMPLES = 1024
FEWEST_SAMPLES = 64
# Wider outputs are seen through so many random directions.
DIRECTIONS = 128
# Of the sum of squares: as much as the shakiest directions carry.
PENALTY = 1e-3
MOST_PREFIXES = 200


@dataclass(frozen=True)
class Prefix:
    """The model up to and with one layer."""

    path: str
    kind: str
    shape: tuple[int, ...]
    mean: float | None
    std: float | None
    zeros: float  # share of the values
    not_finite: int
    read_off: float | None = None  # by a straight line: share of classes, or r², of samples it was not fitted to


@probe(title="Growing the model layer by layer", stage=Stage.MODEL, emits=(), rank=99, share=0.2)
def growing(lab: Lab) -> Iterator[Observation]:
    yield from ()
    if not lab.grows:
        return
    try:
        lab.facts["prefixes"] = _grown(lab)
    except Unsupported as error:
        lab.notes.append(f"prefixes could not be looked at: {error}")


def _grown(lab: Lab) -> dict[str, Any]:
    if not isinstance(lab.adapter, LayerValues):
        raise Unsupported(f"inside models of {lab.adapter.name} nothing can be heard yet")
    heard: dict[str, Prefix] = {}
    values: dict[str, list[np.ndarray]] = {}

    def value(what: Heard, array: Any) -> None:
        known = heard.get(what.path)
        if known is None and len(heard) >= MOST_PREFIXES:
            return
        numbers = lab.adapter.values(array)
        if known is None:
            heard[what.path] = _prefix(what, numbers)
        values.setdefault(what.path, []).append(numbers)

    failed, used = None, []
    with lab.adapter.layer_values(lab.bench, lambda path, usual: usual, value):
        for batch in lab.train.batches:
            try:
                lab.bench.forward(batch.inputs)
            except Exception as error:
                failed = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
                break
            used.append(batch)
            if sum(len(v) for v in next(iter(values.values()), [])) >= MOST_SAMPLES:
                break
            lab.tick()
    task, chance = _task(lab, used)
    rows = [replace(row, read_off=_read_off(values[path], task, lab)) for path, row in heard.items()]
    return {"rows": [asdict(row) for row in rows], "failed": failed, "chance": chance}


def _prefix(what: Heard, numbers: np.ndarray) -> Prefix:
    finite = numbers[np.isfinite(numbers)] if numbers.dtype.kind == "f" else numbers
    mean, std = (float(finite.mean(dtype=np.float64)), float(finite.std(dtype=np.float64))) if finite.size else (None, None)
    zeros = float(np.mean(finite == 0)) if finite.size else 0.0
    return Prefix(what.path, what.kind, numbers.shape, mean, std, zeros, numbers.size - finite.size)


def _task(lab: Lab, used: list[Any]) -> tuple[Task | None, float | None]:
    """None where there is nothing that a line could tell: a sequence, an image, too few samples."""
    try:
        targets = join(used, lab.adapter).targets
        task = task_of(targets)
    except (Unsupported, ValueError):
        return None, None
    return (task, task.chance) if len(task.values) >= FEWEST_SAMPLES else (None, None)


def _read_off(parts: list[np.ndarray], task: Task | None, lab: Lab) -> float | None:
    """Fitted to one half of the samples, asked of the other."""
    if task is None or not _stacks(parts) or sum(len(p) for p in parts) != len(task.values):
        return None
    table = np.concatenate([p.reshape(len(p), -1) for p in parts]).astype(np.float64)
    if not np.isfinite(table).all():
        return None
    rng = lab.rng
    if table.shape[1] > DIRECTIONS:
        table = table @ rng.standard_normal((table.shape[1], DIRECTIONS)) / np.sqrt(table.shape[1])
    order = rng.permutation(len(table))
    fit, ask = np.array_split(order, 2)
    centre, spread = table[fit].mean(axis=0), table[fit].std(axis=0)
    table = (table - centre) / np.where(spread > 0, spread, 1.0)
    columns, middle = task.columns, task.columns[fit].mean(axis=0)
    square = table[fit].T @ table[fit] + PENALTY * len(fit) * np.eye(table.shape[1])
    weights = np.linalg.solve(square, table[fit].T @ (columns[fit] - middle))
    return float(1 - task.errors(table[ask] @ weights + middle, task.values[ask]).mean())


def _stacks(parts: list[np.ndarray]) -> bool:
    return bool(parts) and parts[0].ndim > 0 and len({p.shape[1:] for p in parts}) == 1
