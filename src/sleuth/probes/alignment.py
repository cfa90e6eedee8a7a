"""Asks whether the targets belong to their inputs: can anything about them be learned, as they are or in another order?"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.stage import Stage
from sleuth.core.subject import Parts
from sleuth.core.trial import Alignment, Moved
from sleuth.probes.features import freedom, tabulate
from sleuth.probes.learnability import LEVEL, PLAIN, Learnability, Result
from sleuth.probes.learners import Bank
from sleuth.probes.own_model import try_model
from sleuth.probes.probe import Lab, probe
from sleuth.probes.samples import Samples, collect, from_readings, join
from sleuth.probes.targets import Encoded, encode

# Fewer samples cannot tell one permutation from another.
FEWEST = 30
# Misplaced headers, windows and off-by-one loops move targets by a few rows.
FARTHEST = 5
# Principal components that stand for an input when its neighbours predict it.
COMPONENTS = 5


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
    moves = _moves(samples)
    lab.tick()
    given, *others = question.test(np.array([np.arange(len(samples)), *moves.values()]))
    trial = _trial(samples, encoded, given)
    if others:
        # Pictures that resemble their neighbours are sorted by class, not a series in time.
        serial = None if samples.pictures else _serial(bank, moves[1])
        trial = replace(trial, moved=_best_move(moves, others, samples, encoded, bank), serial=serial)
    if given.p_value > LEVEL and (trial.moved is None or trial.moved.p_value > PLAIN):
        trial = replace(trial, detectable=question.detectable(), freedom=freedom(samples.blocks, lab.rng))
        trial = _with_validation(lab, _with_model(lab, trial))
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


def _moves(samples: Samples) -> dict[int | None, np.ndarray]:
    """Other orders of the targets, by the rows that np.roll would move them; −1 where a target was not read."""
    positions = samples.positions
    if positions is None:
        return {}
    places = {rows: positions - rows for rows in range(-FARTHEST, FARTHEST + 1) if rows}
    orders: dict[int | None, np.ndarray] = {rows: _find(positions, wanted) for rows, wanted in places.items()}
    if samples.total is not None:
        orders[None] = _find(positions, samples.total - 1 - positions)
    return orders


def _find(positions: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where each wanted position stands among the read ones; −1 where it does not."""
    index = np.minimum(np.searchsorted(positions, wanted), len(positions) - 1)
    return np.where(positions[index] == wanted, index, -1)


def _best_move(
    moves: dict[int | None, np.ndarray], results: list[Result], samples: Samples, encoded: Encoded, bank: Bank
) -> Moved:
    rows, best = max(zip(moves, results, strict=True), key=lambda move: move[1].best)
    return Moved(
        rows,
        best.skill,
        p_value=min(1.0, len(results) * best.p_value),
        serial=_serial(bank, moves[rows]),
        contained=_contained(samples.blocks, encoded.plain, moves[rows]),
    )


def _serial(bank: Bank, order: np.ndarray) -> float:
    """How well an input predicts the input that far away: near 0 where rows are independent of each other."""
    basis, singular = bank.smooth[0]
    components = (basis * singular)[:, -COMPONENTS:].astype(np.float32)
    correlation = float(bank.correlations(components, order[None]).max())
    return correlation * abs(correlation)


def _contained(blocks: list[np.ndarray], targets: np.ndarray, order: np.ndarray) -> float:
    """Whether the inputs hold these targets as they are: the next token or value of a series, moved back by a row."""
    there = order >= 0
    wanted = _unit(targets[order[there]])
    columns = np.concatenate([_unit(block[there].astype(np.float32)) for block in blocks], axis=1)
    nearest = np.abs(columns.T @ wanted).max(axis=0, initial=0.0)
    return float(max(nearest[-1], nearest.mean()))


def _unit(columns: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and length 1; constant ones are 0."""
    centred = columns - columns.mean(axis=0)
    return np.asarray(centred / np.maximum(np.linalg.norm(centred, axis=0), 1e-12))


def _with_model(lab: Lab, trial: Alignment) -> Alignment:
    def targets_of(batches: list[Parts]) -> np.ndarray:
        some = join(batches, lab.adapter)
        return encode(some.targets, some.blocks).columns

    result = try_model(lab, targets_of)
    if result is None:
        return trial
    return replace(trial, model_skill=result.skill, model_p_value=result.p_value)


def _with_validation(lab: Lab, trial: Alignment) -> Alignment:
    """Where training shows nothing: does validation?"""
    if lab.validation is None or not lab.validation.batches or lab.time_is_up():
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
