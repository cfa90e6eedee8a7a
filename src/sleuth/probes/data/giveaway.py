"""Looks for a column of a table that gives the target away by itself."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from sleuth.core.observation import Observation
from sleuth.core.stage import Stage
from sleuth.core.trial import Giveaway
from sleuth.probes.lab.probe import Lab, probe
from sleuth.probes.lab.samples import Samples, collect
from sleuth.probes.learners.features import tabulate
from sleuth.probes.learners.learnability import Learnability
from sleuth.probes.learners.simple_learners import Bank
from sleuth.probes.learners.single_column import class_error, number_error, separation
from sleuth.probes.learners.table import Table, make_table, table_inputs
from sleuth.probes.learners.targets import encode

# Near perfect: one wrong answer in a hundred that guessing gets wrong; numbers up to a fourteenth of their spread.
NEAR_CLASS, NEAR_NUMBER = 0.01, 0.005
# A target may have left traces in a second and a third column of a wide table.
MOST_ACCUSED, COLUMNS_AN_ACCUSED = 3, 6
# From here on the rows of a table follow each other in time: the next one is as good as known.
SERIAL = 0.9
# So many targets found in other rows of the column are no coincidence: the column is the target of another row.
ELSEWHERE = 0.5


@probe(title="Looking for columns that give the target away", stage=Stage.DATA, rank=55, emits=(Giveaway,), share=0.08)
def giveaway(lab: Lab) -> Iterator[Observation]:
    arrays = table_inputs(lab)
    samples = collect(lab)
    table = make_table(arrays, samples)
    total = samples.total or (lab.train.samples if lab.train.complete else None)
    errors = _errors(table, lab.tick)
    order = np.argsort(errors, kind="stable")
    most = min(MOST_ACCUSED, max(1, len(errors) // COLUMNS_AN_ACCUSED))
    # One more than may be accused is looked at: where the row of good columns goes on, none of them is special.
    accused = [int(i) for i in order[: most + 1] if errors[i] <= _near(table)]
    accused = [] if len(accused) > most else accused
    following = int(order[len(accused)])
    best = int(order[0])
    trial = Giveaway(
        samples=len(table.target),
        total=total,
        columns=len(table.names),
        classes=table.classes,
        accused=tuple(table.names[i] for i in accused),
        error=float(errors[best]),
        next_error=float(errors[following]),
        next_column=table.names[following],
        p_value=_chance(float(errors[best]), table),
        complete=len(samples) == total,
    )
    yield _looked_into(lab, trial, table, samples, accused) if accused else trial


def _near(table: Table) -> float:
    """Where classes meet, the outermost sample of each may be taken for its neighbour's."""
    return max(NEAR_CLASS, table.classes / len(table.target)) if table.classes else NEAR_NUMBER


def _error(table: Table, column: int) -> float:
    values = table.columns[:, column]
    return class_error(values, table.target, table.classes) if table.classes else number_error(values, table.target)


def _errors(table: Table, tick: Callable[[], None]) -> np.ndarray:
    errors = np.empty(len(table.names))
    for column in range(len(errors)):
        errors[column] = _error(table, column)
        if column % 64 == 0:
            tick()
    return errors


def _chance(error: float, table: Table) -> float:
    """Above the probability that one of so many independent columns does as well.

    Numbers: r² of independent normal samples exceeds 1 − e with less than e^((n − 3) / 2). Classes: Hoeffding's bound on the
    share of right answers. Neighbours answer for each other, so that only half of the answers are independent.
    """
    size = len(table.target)
    if not table.classes:
        return min(1.0, len(table.names) * max(error, 1e-12) ** ((size - 3) / 2))
    commonest = np.bincount(table.target).max() / size
    right = 1 - error * (1 - 1 / table.classes)
    if right <= commonest:
        return 1.0
    odds = right * math.log(right / commonest)
    odds += (1 - right) * math.log((1 - right) / (1 - commonest)) if right < 1 else 0.0
    return min(1.0, len(table.names) * math.exp(-size / 2 * odds))


def _looked_into(lab: Lab, trial: Giveaway, table: Table, samples: Samples, accused: list[int]) -> Giveaway:
    best = table.columns[:, accused[0]]
    rest = np.delete(table.columns, accused, axis=1).astype(np.float32)
    target = table.target if table.classes else table.target.astype(np.float32)
    result = Learnability(Bank(tabulate([rest], lab.rng), lab.rng), encode([target], []).columns, lab.rng).test(
        np.arange(len(target))[None]
    )[0]
    return replace(
        trial,
        copied=_is_copy(best, table),
        separation=separation(best, table.target, table.classes) if table.classes else None,
        rest_skill=result.skill,
        rest_p_value=result.p_value,
        series=not table.classes and _is_series(best, table.target, samples),
    )


def _is_copy(column: np.ndarray, table: Table) -> bool:
    if not table.classes:
        return 1 - abs(float(np.corrcoef(column, table.target)[0, 1])) < 1e-6
    pairs = np.unique(np.stack([column, table.target]), axis=1).shape[1]
    return pairs == table.classes == len(np.unique(column))


def _is_series(column: np.ndarray, target: np.ndarray, samples: Samples) -> bool:
    """A forecast has its target in a later row, where the last value known may be nearly right by itself."""
    own = np.float32(column) == np.float32(target)
    if np.mean(np.isin(np.float32(target), np.float32(column)) & ~own) > ELSEWHERE:
        return True
    if samples.positions is None or len(samples.positions) != len(target):
        return False
    neighbours = np.diff(samples.positions) == 1
    before, after = target[:-1][neighbours], target[1:][neighbours]
    return len(before) > 2 and float(np.corrcoef(before, after)[0, 1]) > SERIAL
