"""Counts what each layer calls in a forward pass, with all samples of a batch and with half of them; where that grows, layers
are timed."""

from collections.abc import Iterator

import numpy as np

from sleuth.core.contract.adapter import Profiles
from sleuth.core.contract.workload import LayerWork
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.stage import Stage
from sleuth.core.trial import LayerLoad, Workload
from sleuth.probes.lab.one_batch import sample_count, take_rows
from sleuth.probes.lab.probe import Lab, probe

# Fewer samples do not show what grows with them.
LEAST_SAMPLES = 8
# The quickest of some passes counts; together they may take so many seconds.
MOST_REPEATS = 5
SECONDS = 0.3


@probe(
    title="Timing the layers",
    stage=Stage.RESOURCES,
    rank=10,
    emits=(Workload,),
    needs=("forward", "loss"),
    share=0.05,
)
def workload(lab: Lab) -> Iterator[Observation]:
    if not isinstance(lab.adapter, Profiles):
        raise Unsupported(f"the {lab.adapter.name} adapter cannot time layers")
    count = sample_count(lab, lab.batch)
    if count is None or count < LEAST_SAMPLES:
        raise Unsupported(f"it takes a batch of at least {LEAST_SAMPLES} samples that can be told apart")
    start = lab.bench.snapshot()
    try:
        lab.bench.set_training(True)
        half = count // 2
        counted = {layer.path: layer.operations for layer in _of_fewer(lab, lab.adapter, half)}
        lab.tick()
        found = lab.adapter.work(lab.bench, lab.batch, 0)
        if any(layer.operations > counted.get(layer.path, 0) for layer in found):
            lab.tick()
            found = lab.adapter.work(lab.bench, lab.batch, _repeats(lab))
    finally:
        lab.bench.restore(start)
    layers = (LayerLoad(w.path, w.kind, w.family, w.forward, w.flops, w.operations, counted.get(w.path, 0)) for w in found)
    yield Workload(tuple(layers), count, half)


def _repeats(lab: Lab) -> int:
    began = lab.clock()
    lab.bench.loss(lab.batch)
    return int(np.clip(SECONDS / max(lab.clock() - began, 1e-6), 1, MOST_REPEATS))


def _of_fewer(lab: Lab, adapter: Profiles, count: int) -> tuple[LayerWork, ...]:
    try:
        return adapter.work(lab.bench, take_rows(lab, lab.batch, np.arange(count)), 0)
    except Exception:  # the nodes of one graph, or a size that the model was built for
        raise Unsupported("the model cannot be run on half of a batch, so what grows with the samples cannot be seen") from None
