"""Running the model on changed inputs with everything else equal, and measuring how far its outputs move."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.core.runtime.tree import leaves, map_arrays
from sleuth.core.subject import Parts
from sleuth.probes.lab.one_batch import change_arrays
from sleuth.probes.lab.probe import Lab
from sleuth.probes.lab.roles import answers, with_inputs

# Of an output's size: two values closer than this are the same in every precision.
SMALLEST_SPREAD = 1e-12

Outputs = dict[str, np.ndarray]
Change = Callable[[str, np.ndarray], np.ndarray]


@dataclass
class Rerun:
    """The model from one state: weights, buffers and dice are put back before every pass."""

    lab: Lab
    snapshot: Any
    batch: Parts
    training: bool = False

    def __call__(self, inputs: Any) -> Outputs:
        self.lab.tick()
        self.lab.bench.restore(self.snapshot)
        self.lab.bench.set_training(self.training)
        return outputs_of(self.lab, with_inputs(self.lab, self.batch, inputs))


def outputs_of(lab: Lab, batch: Parts) -> Outputs:
    """The floating outputs of one pass, by path; also those of several calls inside a step of the user's own."""
    made = leaves(answers(lab, batch), lab.adapter.is_array)
    values = {path: np.array(lab.adapter.values(array)) for path, array in made}
    return {path: v.astype(np.float64) for path, v in values.items() if v.dtype.kind == "f" and v.size}


def input_arrays(lab: Lab, inputs: Any) -> dict[str, np.ndarray]:
    return {path or "input": lab.adapter.values(array) for path, array in leaves(inputs, lab.adapter.is_array)}


def first_samples(lab: Lab, batch: Parts, count: int) -> Parts:
    """The first samples of a batch alone: what only compares samples need not pay for all of them."""
    size = sample_count(input_arrays(lab, batch.inputs))

    def cut(array: Any) -> Any:
        return array[:count] if len(array.shape) and array.shape[0] == size else array

    return change_arrays(lab, batch, cut)


def changed(lab: Lab, inputs: Any, change: Change) -> Any:
    """The same inputs with `change(path, values)` in place of each array."""
    paths = iter(input_arrays(lab, inputs))
    return map_arrays(inputs, lambda a: lab.adapter.like(change(next(paths), lab.adapter.values(a)), a), lab.adapter.is_array)


def exchanges(lab: Lab, parts: Parts) -> Iterator[Change]:
    """Ways to put other values into the inputs: another sample's, another batch's, noise."""
    given = input_arrays(lab, parts.inputs)
    size = sample_count(given)
    yield lambda path, v: np.roll(v, 1, axis=0) if v.ndim and v.shape[0] == size else v
    for other in lab.train.batches[1:8]:
        fresh = {path: v[:size] if v.ndim else v for path, v in input_arrays(lab, other.inputs).items()}
        if all(p in fresh and fresh[p].shape == v.shape for p, v in given.items()):
            yield lambda path, v, fresh=fresh: fresh[path]  # type: ignore[misc]
            break
    if any(v.dtype.kind == "f" for v in given.values()):
        yield lambda path, v: _noise(lab, v) if v.dtype.kind == "f" else v


def _noise(lab: Lab, values: np.ndarray) -> np.ndarray:
    spread = float(np.nanstd(values)) or 1.0
    return np.asarray(values + lab.rng.normal(0.0, spread, values.shape)).astype(values.dtype)


def sample_count(given: dict[str, np.ndarray]) -> int:
    first = next((v for v in given.values() if v.ndim), None)
    if first is None:
        raise Unsupported("the inputs have no axis of samples")
    return int(first.shape[0])


def movement(one: Outputs, other: Outputs) -> float:
    """The largest change of an output, relative to its own spread over samples; 1 when its shape changed."""
    if one.keys() != other.keys() or any(one[k].shape != other[k].shape for k in one):
        return 1.0
    return max((rms(one[k] - other[k]) / spread(one[k]) for k in one), default=0.0)


def rms(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0


def spread(values: np.ndarray) -> float:
    """Over the first axis where it has several entries, else over everything."""
    centred = values - (values.mean(axis=0) if values.ndim and values.shape[0] > 1 else values.mean())
    return max(rms(centred), SMALLEST_SPREAD * rms(values), np.finfo(np.float64).tiny)
