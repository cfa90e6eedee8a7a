"""One forward, loss and backward in training mode, listened to: what everything after it depends on."""

from collections.abc import Iterator

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.core.observation import Absent, Failure, Frame, LossCall, Observation, Role, Units
from sleuth.core.runtime.tree import leaves
from sleuth.core.stage import Stage
from sleuth.probes.lab.probe import Lab, probe
from sleuth.probes.lab.roles import answers

# Units and activations are judged over this many batches: one alone may miss a unit that fires rarely.
OBSERVED_BATCHES = 4
# Listening to every op of a large model is slow; when this much of the time is gone, fewer batches must do.
OBSERVED_SHARE = 0.04
# What is not there when a phase failed: checks that read it then give that reason.
TOLD_BY = {"forward": (Role.ACTIVATION, Units), "loss": (LossCall,), "backward": (Role.GRADIENT,)}


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
        yield from (Absent(what, lab.failed[phase]) for phase, whats in TOLD_BY.items() if phase in lab.failed for what in whats)
    finally:
        lab.bench.restore(start)


def _weights(lab: Lab) -> Iterator[Observation]:
    paths = lab.bench.paths()
    if paths:
        yield Frame(0, Role.WEIGHT, paths, lab.adapter.measure([lab.bench.parameter(p) for p in paths]))


def _observe(lab: Lab) -> Iterator[Observation]:
    lab.bench.set_training(True)
    began = lab.clock()
    for step, batch in enumerate(lab.train.batches[:OBSERVED_BATCHES]):
        heard = list(lab.bench.observe(batch, step))
        _note_failures(lab, heard)
        yield from heard
        if lab.failed or lab.clock() - began > OBSERVED_SHARE * lab.budget_seconds:
            break
    _note_output(lab)
    if lab.subject.loss is None and lab.subject.step is None and not lab.failed:
        _ask_for_a_loss(lab)


def _ask_for_a_loss(lab: Lab) -> None:
    """A model may bring its own."""
    try:
        lab.bench.loss(lab.batch)
    except Unsupported as error:
        lab.failed |= {"loss": str(error), "backward": str(error)}


def _note_failures(lab: Lab, heard: list[Observation]) -> None:
    failure = next((o for o in heard if isinstance(o, Failure)), None)
    if failure is not None:
        what = "the loss" if failure.phase == "loss" else f"the {failure.phase} pass"
        reason = f"{what} fails: {failure.error}"
        lab.failed.setdefault(failure.phase, reason)
    elif any(isinstance(o, LossCall) and o.value is None for o in heard):
        reason = "the loss at the start is not a finite number"
    else:
        return
    lab.failed.setdefault("loss", reason)
    lab.failed.setdefault("backward", reason)


def _note_output(lab: Lab) -> None:
    if "forward" in lab.failed:
        return
    try:
        output = answers(lab, lab.batch)
    except Exception:  # a step of the user's own may call the model in a way that we cannot
        return
    lab.facts["output_shape"] = [tuple(a.shape) for _, a in leaves(output, lab.adapter.is_array)][:4]


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
    yield from _once_more(lab)


def _once_more(lab: Lab) -> Iterator[Observation]:
    """What a step leaves behind may stop the next one: a hidden state that drags its used-up graph along."""
    try:
        lab.bench.gradients(lab.train.batches[1 % len(lab.train.batches)])
    except Exception as error:
        failure = lab.bench.explain_failure(error, "backward")
        if isinstance(failure, Failure) and failure.kind == "graph":
            lab.failed["backward"] = f"the second backward pass fails: {type(error).__name__}"
            yield failure
