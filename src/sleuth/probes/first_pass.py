"""One forward, loss and backward in training mode, listened to: what everything after it depends on."""

from collections.abc import Iterator

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.core.observation import Failure, Frame, LossCall, Observation, Role, Units
from sleuth.core.stage import Stage
from sleuth.core.tree import leaves
from sleuth.probes.probe import Lab, probe

# Units and activations are judged over this many batches: one alone may miss a unit that fires rarely.
OBSERVED_BATCHES = 4


@probe(
    title="One forward, loss and backward",
    stage=Stage.MODEL,
    rank=1,
    emits=(Role.ACTIVATION, LossCall, Units, Role.WEIGHT, Role.GRADIENT),
    share=0.2,
)
def first_pass(lab: Lab) -> Iterator[Observation]:
    if lab.bench_ is None or not lab.train.batches:
        reason = "no training batch could be read" if lab.bench_ else "this adapter cannot run experiments"
        lab.failed |= {"forward": reason, "loss": reason, "backward": reason}
        raise Unsupported(reason)
    start = lab.bench.snapshot()
    try:
        yield from _weights(lab)
        yield from _observe(lab)
        yield from _gradients(lab)
    finally:
        lab.bench.restore(start)


def _weights(lab: Lab) -> Iterator[Observation]:
    paths = lab.bench.paths()
    if paths:
        yield Frame(0, Role.WEIGHT, paths, lab.adapter.measure([lab.bench.parameter(p) for p in paths]))


def _observe(lab: Lab) -> Iterator[Observation]:
    lab.bench.set_training(True)
    for step, batch in enumerate(lab.train.batches[:OBSERVED_BATCHES]):
        for observation in lab.bench.observe(batch, step):
            if isinstance(observation, Failure):
                reason = f"the {observation.phase} pass fails: {observation.error}"
                lab.failed.setdefault(observation.phase, reason)
                lab.failed.setdefault("loss", reason)
                lab.failed.setdefault("backward", reason)
            if isinstance(observation, LossCall) and observation.value is None:
                reason = "the loss at the start is not a finite number"
                lab.failed.setdefault("loss", reason)
                lab.failed.setdefault("backward", reason)
            yield observation
        if lab.failed or lab.time_is_up():
            break
    if "forward" not in lab.failed:
        outputs = [a for _, a in leaves(lab.bench.forward(lab.batch.inputs), lab.adapter.is_array)]
        lab.facts["output_shape"] = [tuple(a.shape) for a in outputs][:4]
    if lab.subject.loss is None and lab.subject.step is None:
        lab.failed.setdefault("loss", "no loss was given")
        lab.failed.setdefault("backward", "no loss was given")


def _gradients(lab: Lab) -> Iterator[Observation]:
    if "loss" in lab.failed or "backward" in lab.failed:
        return
    try:
        result = lab.bench.gradients(lab.batch)
    except Unsupported as error:
        lab.failed["backward"] = str(error)
        return
    except Exception as error:
        failure = lab.bench.explain_failure(error, "backward")
        lab.failed["backward"] = f"the backward pass fails: {type(error).__name__}"
        yield failure
        return
    reached = {path: g for path, g in result.by_path.items() if g is not None}
    if not reached:
        lab.failed["backward"] = "the loss reaches no parameter"
        return
    table = lab.adapter.measure(list(reached.values()))
    if not np.all(table[:, 7:9] == 0):
        lab.failed["backward"] = "a gradient at the start is not finite"
    yield Frame(0, Role.GRADIENT, tuple(reached), table)
