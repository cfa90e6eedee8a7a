"""Asks whether the targets belong to their inputs: can anything about them be learned, as they are or in another order?"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.stage import Stage
from sleuth.core.subject import Parts
from sleuth.core.trial import Alignment, Moved
from sleuth.probes.lab.probe import Lab, probe
from sleuth.probes.lab.samples import Samples, collect, from_readings, join
from sleuth.probes.learners.features import freedom, tabulate
from sleuth.probes.learners.learnability import LEVEL, PLAIN, Learnability, Result
from sleuth.probes.learners.own_model import try_model
from sleuth.probes.learners.simple_learners import Bank
from sleuth.probes.learners.target_orders import NEAR, Moves, contained, other_orders, serial
from sleuth.probes.learners.targets import Encoded, encode

# Fewer samples cannot tell one permutation from another.
FEWEST = 30


@probe(title="Asking whether targets belong to their inputs", stage=Stage.DATA, rank=60, emits=(Alignment,), share=0.15)
def alignment(lab: Lab) -> Iterator[Observation]:
    _refuse_guesses(lab)
    samples = collect(lab)
    if len(samples) < FEWEST:
        raise Unsupported(f"cannot tell from {len(samples)} samples: at least {FEWEST} are needed")
    encoded = encode(samples.targets, samples.blocks)
    table = tabulate(samples.blocks, lab.rng)
    if not table.shape[1]:
        raise Unsupported("the inputs do not vary")
    bank = Bank(table, lab.rng)
    question = Learnability(bank, encoded.columns, lab.rng)
    moves = other_orders(samples, encoded, bank) if samples.positions is not None else None
    lab.tick()
    given, *others = question.test(np.array([np.arange(len(samples)), *(moves.orders.values() if moves else ())]))
    trial = _trial(samples, encoded, given)
    if moves is not None:
        trial = _with_moves(trial, moves, others, samples, encoded, bank)
    moved = trial.moved
    if moved is not None and moved.p_value <= PLAIN:
        trial = _with_validation(lab, trial) if given.skill <= moved.skill / 2 else trial
    elif given.p_value > LEVEL:
        trial = replace(trial, detectable=question.detectable(), freedom=freedom(samples.blocks, lab.rng))
        # The model last: where it has to be compiled first, its try may take all the time that is left.
        trial = _with_model(lab, _with_validation(lab, trial))
    yield trial


def _refuse_guesses(lab: Lab) -> None:
    subject = lab.subject
    if subject.step is None or subject.split is not None or not lab.train.batches:
        return
    raw = lab.train.batches[0].raw
    if isinstance(raw, tuple | list) and not hasattr(raw, "_fields") and len(raw) > 2:
        raise Unsupported(f"which of the {len(raw)} parts of a batch is the target is known to step= alone; say it with split=")


def _trial(samples: Samples, encoded: Encoded, given: Result) -> Alignment:
    return Alignment(
        samples=len(samples),
        classes=encoded.classes,
        skill=given.skill,
        permuted_mean=given.permuted_mean,
        permuted_std=given.permuted_std,
        p_value=given.p_value,
        learner=given.learner,
    )


def _with_moves(
    trial: Alignment, moves: Moves, results: list[Result], samples: Samples, encoded: Encoded, bank: Bank
) -> Alignment:
    rows, result, p_value, runner_up = moves.best(results)
    neighbours = [serial(bank, moves.orders[lag]) for lag in range(1, NEAR + 1)]
    # Two series in time resemble each other at some distant shift by chance: all rows must be independent there.
    dependence = max([serial(bank, moves.orders[rows]), *(neighbours if moves.is_far(rows) else [])])
    found = contained(samples.values, encoded.plain, moves.orders[rows])
    # Pictures that resemble their neighbours are sorted by class, not a series in time.
    return replace(
        trial,
        moved=Moved(rows, result.skill, p_value, dependence, found, runner_up),
        serial=None if samples.pictures else neighbours[0],
        orders_tried=moves.tried,
    )


def _with_model(lab: Lab, trial: Alignment) -> Alignment:
    def targets_of(batches: list[Parts]) -> np.ndarray:
        some = join(batches, lab.adapter)
        return encode(some.targets, some.blocks).columns

    result = try_model(lab, targets_of)
    if result is None:
        return trial
    return replace(trial, model_skill=result.skill, model_p_value=result.p_value)


def _with_validation(lab: Lab, trial: Alignment) -> Alignment:
    """Where training shows nothing: does validation? Asked though the share of time is used up: it takes little, and decides."""
    if lab.validation is None or not lab.validation.batches or lab.seconds_left() <= 0:
        return trial
    try:
        samples = from_readings(lab, lab.validation)
        if len(samples) < FEWEST:
            return trial
        encoded = encode(samples.targets, samples.blocks)
        bank = Bank(tabulate(samples.blocks, lab.rng), lab.rng)
        result = Learnability(bank, encoded.columns, lab.rng).test(np.arange(len(samples))[None])[0]
    except Unsupported:
        return trial
    return replace(trial, validation_samples=len(samples), validation_skill=result.skill, validation_p_value=result.p_value)
