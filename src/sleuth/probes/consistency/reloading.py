"""A training that is saved, loaded and continued, beside one that goes on."""

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

from sleuth.core.contract.adapter import Bench, CheckpointState, Steps
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.runtime.tree import leaves
from sleuth.core.stage import Stage
from sleuth.core.trial import Reload
from sleuth.probes.lab.probe import Lab, probe

STEPS = 3
NONE = "how the training is saved was not told: examine(…, checkpoint=(save, load))"


@probe(title="Saving, loading and going on", stage=Stage.CONSISTENCY, emits=(Reload,), needs=("backward",), share=0.15)
def reloading(lab: Lab) -> Iterator[Observation]:
    if lab.subject.checkpoint is None:
        raise Unsupported(NONE)
    adapter = lab.adapter
    if not isinstance(adapter, Steps) or not isinstance(adapter, CheckpointState):
        raise Unsupported(f"models and optimisers of {adapter.name} cannot be handed to code that saves them yet")
    save, load = lab.subject.checkpoint
    with adapter.preserve(lab.subject), adapter.bench(lab.subject) as one, adapter.bench(lab.subject) as other:
        if any(bench.note and "copied" in bench.note for bench in (one, other)):
            raise Unsupported("the model cannot be copied, so there is nothing to load into")
        one.set_training(True)
        for step in range(STEPS):
            lab.tick()
            one.step(_batch(lab, step))
        try:
            # By reference it would go on changing with the training; who writes a file has a copy.
            saved = _kept(save(*adapter.model_and_optimiser(one)))
            load(saved, *adapter.model_and_optimiser(other))
        except Unsupported:
            raise
        except Exception as error:
            yield Reload(STEPS, (), (), 0.0, 0.0, error=f"{type(error).__name__}: {error}")
            return
        yield _compared(lab, adapter, one, other)


def _kept(saved: Any) -> Any:
    try:
        return copy.deepcopy(saved)
    except Exception:  # a file, or what else cannot be copied, keeps by itself
        return saved


def _compared(lab: Lab, adapter: CheckpointState, one: Bench, other: Bench) -> Reload:
    weights = tuple(
        p for p in one.paths() if not np.array_equal(_values(lab, one.parameter(p)), _values(lab, other.parameter(p)))
    )
    held = adapter.statistics(one), adapter.statistics(other)
    beside = tuple(p for p in held[0] if not np.array_equal(_values(lab, held[0][p]), _values(lab, held[1][p])))
    outputs = [_answers(lab, bench) for bench in (one, other)]
    output = max((_apart(a, b) for a, b in zip(*outputs, strict=True)), default=0.0)
    lr = (one.lr, other.lr)
    changes = [_next(lab, bench) for bench in (one, other)]
    moved = max((_apart(a, b) for a, b in zip(*changes, strict=True)), default=0.0)
    rates = (lr[0], lr[1]) if lr[0] is not None and lr[1] is not None and lr[0] != lr[1] else None
    return Reload(STEPS, weights, beside, output, moved, rates)


def _answers(lab: Lab, bench: Bench) -> list[np.ndarray]:
    bench.set_training(False)
    found = [_values(lab, a) for o in bench.outputs(_batch(lab, 0)) for _, a in leaves(o, lab.adapter.is_array)]
    bench.set_training(True)
    return [a for a in found if a.dtype.kind == "f"]


def _next(lab: Lab, bench: Bench) -> list[np.ndarray]:
    """How far one more step moves each weight, with the same random numbers for both."""
    before = {path: np.array(_values(lab, bench.parameter(path))) for path in bench.paths()}
    with lab.adapter.preserve(lab.subject):
        bench.step(_batch(lab, STEPS))
    return [_values(lab, bench.parameter(path)) - before[path] for path in bench.paths()]


def _batch(lab: Lab, step: int) -> Any:
    return lab.train.batches[step % len(lab.train.batches)]


def _values(lab: Lab, array: Any) -> np.ndarray:
    return np.asarray(lab.adapter.values(array))


def _apart(a: np.ndarray, b: np.ndarray) -> float:
    if a.shape != b.shape:
        return float("inf")
    size = max(float(np.abs(a).max(initial=0.0)), float(np.abs(b).max(initial=0.0)))
    return float(np.abs(a - b).max(initial=0.0)) / size if size else 0.0
