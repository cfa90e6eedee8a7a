"""Lets the user's own model try: a short training on some batches, then a look at others."""

from collections.abc import Callable

import numpy as np

from sleuth.core.runtime.tree import leaves
from sleuth.core.subject import Parts
from sleuth.probes.lab.probe import Lab
from sleuth.probes.lab.roles import answers
from sleuth.probes.learners.features import compact, tabulate
from sleuth.probes.learners.learnability import Learnability, Result
from sleuth.probes.learners.simple_learners import Bank

TargetsOf = Callable[[list[Parts]], np.ndarray]

STEPS = 150
# A model that got fewer steps in its time has not had its try.
FEWEST_STEPS = 30
# Every fourth batch is held out.
HELD_OUT = 4
FEWEST_HELD_OUT = 100


def try_model(lab: Lab, targets_of: TargetsOf) -> Result | None:
    """Whether the outputs for held-out samples tell anything about their targets; None when the model could not try.

    The outputs are taken as inputs of the same learners and the same test, so any kind of output and loss will do.
    """
    held_out = lab.train.batches[HELD_OUT - 1 :: HELD_OUT]
    others = [b for i, b in enumerate(lab.train.batches) if i % HELD_OUT != HELD_OUT - 1]
    if lab.bench_ is None or not others or not held_out:
        return None
    snapshot = lab.bench.snapshot()
    try:
        return _test(lab, held_out, targets_of) if _train(lab, others) else None
    except Exception:  # a model that fails here fails the first pass too, which says why
        return None
    finally:
        lab.bench.set_training(True)
        lab.bench.restore(snapshot)


def _train(lab: Lab, batches: list[Parts]) -> bool:
    lab.bench.set_training(True)
    until = lab.clock() + 0.6 * (min(lab.probe_deadline, lab.started + lab.budget_seconds) - lab.clock())
    for step in range(STEPS):
        if lab.clock() > until:
            return step >= FEWEST_STEPS
        if not np.isfinite(lab.bench.step(batches[step % len(batches)])):
            return False
    return True


def _test(lab: Lab, batches: list[Parts], targets_of: TargetsOf) -> Result | None:
    lab.bench.set_training(False)
    outputs: list[np.ndarray] = []
    for batch in batches:
        lab.tick()
        arrays = [lab.adapter.values(a) for _, a in leaves(answers(lab, batch), lab.adapter.is_array)]
        outputs.append(compact(arrays[0].astype(np.float32))[0])
    table = tabulate([np.concatenate(outputs)], lab.rng)
    targets = targets_of(batches)
    if len(table) != len(targets) or len(table) < FEWEST_HELD_OUT or not table.shape[1]:
        return None
    return Learnability(Bank(table, lab.rng), targets, lab.rng).test(np.arange(len(table))[None])[0]
