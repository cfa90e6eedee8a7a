"""Changes inputs and looks which outputs move: what depends on what."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.stage import Stage
from sleuth.core.trial import Dependence
from sleuth.probes.lab.changed_inputs import (
    Outputs,
    Rerun,
    changed,
    exchanges,
    first_samples,
    input_arrays,
    movement,
    sample_count,
)
from sleuth.probes.lab.probe import Lab, probe
from sleuth.probes.model.mixing import Unclear, mixing

# An input this much larger than every other one is what the model is about.
MAIN_FACTOR = 4
MOST_INPUTS = 8
# Enough to see who moves with whom; a deep model is run some twenty times.
SAMPLES = 12


@probe(title="Exchanging inputs", stage=Stage.MODEL, rank=4, emits=(Dependence,), needs=("forward",))
def dependence(lab: Lab) -> Iterator[Observation]:
    snapshot = lab.bench.snapshot()
    try:
        yield _measure(lab, snapshot)
    finally:
        lab.bench.restore(snapshot)


def _measure(lab: Lab, snapshot: Any) -> Dependence:
    rerun, base = _first_run(lab, snapshot)
    if not base:
        raise Unsupported("the model returns no array of floats")
    if not all(np.isfinite(v).all() for v in base.values()):
        raise Unsupported("the outputs are not finite")
    if movement(base, rerun(rerun.batch.inputs)) > 0:
        raise Unsupported("two passes over the same batch give different outputs, even in evaluation mode")
    given = input_arrays(lab, rerun.batch.inputs)
    samples = sample_count(given)
    whole = _change(rerun, None)
    fixed = rerun.batch is lab.batch and not _takes_fewer(rerun, samples)
    # What such a model is given may hold more than it uses: it was recorded together with its loss.
    several = len(given) > 1 and not fixed
    by_input = {path: _change(rerun, path) for path in list(given)[:MOST_INPUTS]} if several else {}
    own, mixed, count, unclear, equivariant = 0.0, 0.0, 0, None, None
    try:
        own, mixed, count, equivariant = mixing(rerun, base, samples, of_one_size=fixed)
    except Unclear as error:
        unclear = str(error)
    main = _main(given) if several else None
    return Dependence(samples, whole, own, mixed, count, by_input, main, unclear, equivariant, of_one_size=fixed)


def _first_run(lab: Lab, snapshot: Any) -> tuple[Rerun, Outputs]:
    """On a few samples; on all of them where the model wants all, such as the nodes of one graph."""
    few = Rerun(lab, snapshot, first_samples(lab, lab.batch, SAMPLES))
    try:
        return few, few(few.batch.inputs)
    except (ValueError, RuntimeError, IndexError, AssertionError, TypeError, Unsupported):
        everything = Rerun(lab, snapshot, lab.batch)
        return everything, everything(lab.batch.inputs)


def _takes_fewer(rerun: Rerun, samples: int) -> bool:
    """False where it is known that only batches of one size are taken; any other failure may have any reason."""
    try:
        rerun(changed(rerun.lab, rerun.batch.inputs, lambda path, v: v[: samples - 1] if v.ndim else v))
    except Unsupported:
        return False
    except Exception:
        return True
    return True


def _change(rerun: Rerun, only: str | None) -> float:
    """How far the outputs move when the inputs, or one of them, are exchanged: the first way that moves them counts.

    Training mode is asked as well: an input may be used there alone, such as the previous words of a decoder.
    """
    lab, inputs = rerun.lab, rerun.batch.inputs
    differs = False
    for training in (False, True):
        mode = replace(rerun, training=training)
        base = mode(inputs)
        for change in exchanges(lab, rerun.batch):
            other = changed(lab, inputs, lambda p, v, c=change: c(p, v) if only in (None, p) else v)  # type: ignore[misc]
            differs |= _differ(lab, inputs, other)
            try:
                moved = movement(base, mode(other))
            except (ValueError, RuntimeError, IndexError):  # this model does not take such values: another way may do
                continue
            if moved > 0:
                return moved
    if only is None and not differs:
        raise Unsupported("all samples of the batch are the same, so there is nothing to exchange")
    return 0.0 if differs else 1.0


def _differ(lab: Lab, inputs: Any, other: Any) -> bool:
    given, fresh = input_arrays(lab, inputs), input_arrays(lab, other)
    return any(not np.array_equal(given[p], fresh[p]) for p in given)


def _main(given: dict[str, np.ndarray]) -> str | None:
    sizes = {path: v.size for path, v in given.items()}
    main = max(sizes, key=lambda path: sizes[path])
    rest = max((size for path, size in sizes.items() if path != main), default=0)
    return main if rest and given[main].dtype.kind == "f" and sizes[main] >= MAIN_FACTOR * rest else None
