"""Do the inputs tell anything about the targets? Held-out skill of simple learners against permuted targets.

The test statistic is the best standardised correlation among all learners. Permuted targets go through the very same
maximum, so the p-value holds whatever the number of learners: of a hundred sets of independent targets one gets p ≤ 0.01.
"""

from dataclasses import dataclass

import numpy as np

from sleuth.probes.learners.simple_learners import Bank

PERMUTATIONS = 199
# After these the answer is plain in most data sets: no need to count permutations when the bound is below this.
FIRST_PERMUTATIONS = 39
PLAIN = 1e-6
# The error rate at which the test says that there is information.
LEVEL = 0.01
# Strengths that are planted to find out what this test would have seen, as r² of the best possible prediction.
STRENGTHS = (0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 0.5)
PLANTINGS = 40
# This share of the plantings must be found for a strength to count as detectable.
POWER = 0.95
# More different targets than this are numbers, not classes.
MOST_CLASSES = 64
# Permutations are too few to count small p-values. A correlation with n random numbers is a smooth function on a sphere
# and exceeds its mean by t with a probability below exp(−n t²/2) (Lévy); half of that exponent is safe for real targets.
CONCENTRATION = 0.25


@dataclass(frozen=True)
class Result:
    """One order of the targets, tested. `skill` is r² of held-out predictions, negative when they mislead."""

    learner: str
    skill: float
    best: float  # the best learner's correlation, in standard deviations of its permutations
    p_value: float
    permuted_mean: float
    permuted_std: float


class Learnability:
    def __init__(self, bank: Bank, targets: np.ndarray, rng: np.random.Generator) -> None:
        self._bank = bank
        self._targets = targets
        self._rng = rng
        self._permuted = self._permute(FIRST_PERMUTATIONS)

    def test(self, orders: np.ndarray) -> list[Result]:
        """One result an order; each order is tested for itself. −1 in an order leaves that sample without a target."""
        correlations = self._bank.correlations(self._targets, orders)
        sizes = np.count_nonzero(orders >= 0, axis=1)
        if self._bounds(correlations, sizes).min() > PLAIN and self._permuted.shape[1] < PERMUTATIONS:
            more = self._permute(PERMUTATIONS - self._permuted.shape[1])
            self._permuted = np.concatenate([self._permuted, more], axis=1)
        bounds = self._bounds(correlations, sizes)
        return [self._result(column, float(bound)) for column, bound in zip(correlations.T, bounds, strict=True)]

    def detectable(self) -> float:
        """The weakest strength that this test finds in 95 of 100 sets; 1 when none is.

        Found by planting: the real targets are handed out along random smooth functions of the real inputs, then so many
        of them are exchanged among each other that the strength is left.
        """
        threshold = np.quantile(_standardise(self._permuted, self._permuted).max(axis=0), 1 - LEVEL)
        low, high = 0, len(STRENGTHS)
        groups = _groups(self._targets)
        while low < high:
            middle = (low + high) // 2
            orders = np.array([self._plant(groups, STRENGTHS[middle], number) for number in range(PLANTINGS)])
            best = _standardise(self._bank.correlations(self._targets, orders), self._permuted).max(axis=0)
            if np.mean(best >= threshold) >= POWER:
                high = middle
            else:
                low = middle + 1
        return STRENGTHS[low] if low < len(STRENGTHS) else 1.0

    def _permute(self, count: int) -> np.ndarray:
        orders = np.array([self._rng.permutation(self._bank.size) for _ in range(count)])
        return self._bank.correlations(self._targets, orders)

    def _bounds(self, correlations: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Above the p-value of each order, for all learners together. `sizes`: samples that have a target in that order."""
        above = np.maximum(correlations - self._permuted.mean(axis=1)[:, None], 0).max(axis=0)
        return np.asarray(len(correlations) * np.exp(-CONCENTRATION * sizes * above**2))

    def _result(self, correlations: np.ndarray, bound: float) -> Result:
        # The order stands among its permutations when the scale is taken, as each of them does: so the p-value is exact.
        pool = np.column_stack([self._permuted, correlations])
        best = _standardise(pool, pool).max(axis=0)
        counted = float(np.mean(best >= best[-1]))
        away = _standardise(correlations[:, None], self._permuted)[:, 0]
        learner = int(np.argmax(away))
        permuted = self._permuted[learner] * np.abs(self._permuted[learner])
        return Result(
            learner=self._bank.names[learner],
            skill=float(correlations[learner] * abs(correlations[learner])),
            best=float(away[learner]),
            p_value=min(counted, bound),
            permuted_mean=float(permuted.mean()),
            permuted_std=float(permuted.std()),
        )

    def _plant(self, groups: list[np.ndarray], strength: float, number: int) -> np.ndarray:
        """An order of the targets in which a share of √strength follows functions of the inputs."""
        basis, singular = self._bank.smooth[number % len(self._bank.smooth)]
        weights = singular[:, None] * self._rng.normal(size=(len(singular), len(groups)))
        functions = basis @ weights.astype(np.float32)
        order = np.empty(self._bank.size, dtype=np.int64)
        free = np.arange(self._bank.size)
        for rows, function in zip(groups, functions.T, strict=True):
            high = np.argsort(-function[free], kind="stable")
            order[free[high[: len(rows)]]] = rows
            free = np.sort(free[high[len(rows) :]])
        loose = np.flatnonzero(self._rng.random(len(order)) >= np.sqrt(strength))
        order[loose] = order[self._rng.permutation(loose)]
        return order


def _standardise(correlations: np.ndarray, permuted: np.ndarray) -> np.ndarray:
    """In standard deviations of each learner's permutations."""
    std = np.maximum(permuted.std(axis=1), 1e-12)
    return (correlations - permuted.mean(axis=1)[:, None]) / std[:, None]


def _groups(targets: np.ndarray) -> list[np.ndarray]:
    """Samples by class, each to be planted into a region of its own; real targets are one group, highest first."""
    values, inverse = np.unique(targets, axis=0, return_inverse=True)
    if len(values) > MOST_CLASSES:
        return [np.argsort(-targets[:, 0], kind="stable")]
    return [np.flatnonzero(inverse.ravel() == k) for k in range(len(values))]
