"""The first steps of a training taken twice, from the same weights, random states and data."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from sleuth.core.contract.adapter import Employs, Steps
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Frame, Observation, Role
from sleuth.core.runtime.tree import leaves, map_arrays
from sleuth.core.stage import Stage
from sleuth.core.subject import Parts
from sleuth.core.trial import TwoTrainings
from sleuth.probes.lab.outside_state import Outside
from sleuth.probes.lab.probe import Lab, probe
from sleuth.probes.lab.sources import open_source

STEPS = 3

# step, activation or loss or weight, path → the bytes that must be the same, and numbers that say how far apart they are
Key = tuple[int, str, str]
Record = dict[Key, tuple[bytes, np.ndarray]]


@probe(title="Taking the first steps twice", stage=Stage.CONSISTENCY, emits=(TwoTrainings,), needs=("backward",), share=0.15)
def two_trainings(lab: Lab) -> Iterator[Observation]:
    if not isinstance(lab.adapter, Steps):
        raise Unsupported(f"the {lab.adapter.name} adapter cannot run experiments")
    read, differs = _data_twice(lab)
    if differs is not None:
        yield TwoTrainings(0, read, differs)
        return
    own = Outside(lab.adapter, lab.subject.loss, lab.subject.step, lab.subject.model)
    one = _record(lab, lab.adapter)
    if (name := own.changed()) is not None:
        raise Unsupported(f"the training keeps {name} outside of its model, so that it cannot be begun again as it was")
    two = _record(lab, lab.adapter)
    parted = next((key for key, (exact, _) in one.items() if key in two and two[key][0] != exact), None)
    if parted is None:
        yield TwoTrainings(STEPS, read)
        return
    step, what, where = parted
    a, b = one[parted][1], two[parted][1]
    scale = max(float(np.abs(a).max(initial=0.0)), float(np.abs(b).max(initial=0.0)), 1e-300)
    yield TwoTrainings(STEPS, read, None, step, what, where, float(np.abs(a - b).max(initial=0.0)) / scale)


def _record(lab: Lab, steps: Steps) -> Record:
    """A bench of its own: whatever the model keeps for itself begins anew as well."""
    found: Record = {}
    with lab.adapter.preserve(lab.subject), steps.bench(lab.subject) as bench:
        if bench.note and "copied" in bench.note:
            raise Unsupported("the model cannot be copied, so that it cannot be begun again as it was")
        bench.set_training(True)
        for step in range(STEPS):
            lab.tick()
            batch = _copied(lab, lab.train.batches[step % len(lab.train.batches)])
            for observation in bench.observe(batch, step):
                if isinstance(observation, Frame) and observation.role is Role.ACTIVATION:
                    for path, row in zip(observation.paths, observation.table, strict=True):
                        found[step, "activation", path] = (row.tobytes(), np.asarray(row[1:6], np.float64))
            loss = np.array([bench.step(_copied(lab, batch))])
            found[step, "loss", "loss"] = (loss.tobytes(), loss)
            for path in bench.paths():
                values = np.asarray(lab.adapter.values(bench.parameter(path)))
                found[step, "weight", path] = (values.tobytes(), values.astype(np.float64))
    return found


def _copied(lab: Lab, batch: Parts) -> Parts:
    """A model may change its inputs in place."""

    def copy(array: Any) -> Any:
        return lab.adapter.like(np.array(lab.adapter.values(array)), array)

    return Parts(*(map_arrays(part, copy, lab.adapter.is_array) for part in (batch.inputs, batch.target, batch.raw)))


def _data_twice(lab: Lab) -> tuple[int, int | None]:
    """(batches that were read twice, the first that differs). A source that goes on where it stopped is left alone."""
    source = lab.subject.train
    crew = lab.adapter.crew(source) if isinstance(lab.adapter, Employs) else None
    if lab.train.order_is_ours or (crew is not None and crew.count):
        return 0, None
    own = Outside(lab.adapter, source)
    passes = []
    for _ in range(2):
        with lab.adapter.preserve(lab.subject):
            passes.append([_bytes(lab, raw) for raw in islice(_batches(lab), STEPS)])
        if own.opaque or own.changed() is not None:
            return 0, None
    one, two = passes
    if len(one) != len(two):
        return 0, None
    return len(one), next((i for i, (a, b) in enumerate(zip(one, two, strict=True)) if a != b), None)


def _batches(lab: Lab) -> Iterator[Any]:
    return iter(open_source(lab.subject.train, lab.adapter, "train").batches)


def _bytes(lab: Lab, raw: Any) -> tuple[bytes, ...]:
    return tuple(np.asarray(lab.adapter.values(a)).tobytes() for _, a in leaves(raw, lab.adapter.is_array))
