"""Other orders of the targets than the one they came in: shifts by any number of rows, and reversed."""

from dataclasses import dataclass

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.probes.lab.samples import Samples
from sleuth.probes.learners.learnability import Result
from sleuth.probes.learners.simple_learners import Bank
from sleuth.probes.learners.target_shifts import likely_shifts
from sleuth.probes.learners.targets import Encoded

# Misplaced headers, windows and off-by-one loops move targets by a few rows: each of these orders is tested. All other
# shifts are looked through at once and the likeliest tested, as one of all that there are. Either lot has half the error rate.
NEAR = 5
LOTS = 2
# Principal components that stand for an input when its neighbours predict it.
COMPONENTS = 5


@dataclass(frozen=True)
class Moves:
    """`orders`: by what np.roll would move the targets, None for reversed; −1 stands where a target was not read."""

    orders: dict[int | None, np.ndarray]
    far: int  # distant shifts that were looked through

    @property
    def near(self) -> int:
        return sum(not self.is_far(rows) for rows in self.orders)

    @property
    def tried(self) -> int:
        return self.near + self.far

    def is_far(self, rows: int | None) -> bool:
        return rows is not None and abs(rows) > NEAR

    def best(self, results: list[Result]) -> tuple[int | None, Result, float, float]:
        """The order that tells most, with a p-value for all orders together; and the skill of the next best one."""
        found = []
        for rows, result in zip(self.orders, results, strict=True):
            count = self.far if self.is_far(rows) else self.near
            found.append((rows, result, min(1.0, LOTS * count * result.p_value)))
        rows, result, p_value = min(found, key=lambda move: (move[2], -move[1].best))
        return rows, result, p_value, max((other.skill for other in results if other is not result), default=0.0)


def other_orders(samples: Samples, encoded: Encoded, bank: Bank) -> Moves:
    positions = samples.positions
    if positions is None:
        raise Unsupported("the order of the data set is unknown")
    orders: dict[int | None, np.ndarray] = {k: _find(positions, positions - k) for k in range(-NEAR, NEAR + 1) if k}
    if samples.total is not None:
        orders[None] = _find(positions, samples.total - 1 - positions)
    shifts = likely_shifts(bank, encoded.columns, positions, samples.total, beyond=NEAR)
    for rows in shifts.proposed:
        moved = positions - rows
        orders[rows] = _find(positions, moved % len(positions) if shifts.wraps else moved)
    return Moves(orders, shifts.tried)


def _find(positions: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where each wanted position stands among the read ones; −1 where it does not."""
    index = np.minimum(np.searchsorted(positions, wanted), len(positions) - 1)
    return np.where(positions[index] == wanted, index, -1)


def serial(bank: Bank, order: np.ndarray) -> float:
    """How well an input predicts the input that far away: near 0 where rows are independent of each other."""
    basis, singular = bank.smooth[0]
    components = (basis * singular)[:, -COMPONENTS:].astype(np.float32)
    correlation = float(bank.correlations(components, order[None]).max())
    return correlation * abs(correlation)


def contained(inputs: list[np.ndarray], targets: np.ndarray, order: np.ndarray) -> float:
    """Whether the inputs hold these targets as they are: the next token or value of a series, moved back by a row."""
    there = order >= 0
    wanted = _unit(targets[order[there]])
    columns = np.concatenate([_unit(block[there].astype(np.float32)) for block in inputs], axis=1)
    nearest = np.abs(columns.T @ wanted).max(axis=0, initial=0.0)
    return float(max(nearest[-1], nearest.mean()))


def _unit(columns: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and length 1; constant ones are 0."""
    centred = columns - columns.mean(axis=0)
    return np.asarray(centred / np.maximum(np.linalg.norm(centred, axis=0), 1e-12))
