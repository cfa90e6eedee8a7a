"""How well one column of numbers predicts a target by itself, each sample held out in turn."""

import numpy as np

# So many neighbours on either side vote, where a single one would be misled by noise.
EITHER_SIDE = 4
# With fewer samples a value than this a column is a code, whose samples of one value vote.
SAMPLES_A_VALUE = 4
# Voting over many classes costs memory; beyond these the nearest sample alone decides.
MOST_VOTED = 16


def class_error(column: np.ndarray, labels: np.ndarray, classes: int) -> float:
    """Wrong answers over what guessing gets wrong; each class counts the same. `labels` are 0 … classes − 1."""
    guesses = _guesses(column, labels, classes)
    wrong = min(_balanced(guess != labels, labels, classes) for guess in guesses)
    return wrong * classes / (classes - 1)


def number_error(column: np.ndarray, target: np.ndarray) -> float:
    """1 − r² of the best of: the column as it is, its ranks, and the mean of its neighbours."""
    order = np.argsort(column, kind="stable")
    skills = [_squared(column, target), _squared(ranks(column), ranks(target))]
    if len(np.unique(column)) * SAMPLES_A_VALUE <= len(column):
        skills.append(_held_out_r2(_group_means(column, target), target))
    else:
        near = np.empty(len(column))
        near[order] = _neighbour_means(target[order])
        skills.append(_held_out_r2(near, target))
    return 1 - max(skills)


def ranks(values: np.ndarray) -> np.ndarray:
    """Equal values share the middle of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - counts / 2)[inverse])


def separation(column: np.ndarray, labels: np.ndarray, classes: int) -> float | None:
    """How far apart neighbouring classes are, in their own spreads, at the least: 2 to 3 where a scale was cut into classes, 5 to
    10 where clouds are easily told apart. None where the values of a class do not vary, or the column counts the rows."""
    groups = [column[labels == k] for k in range(classes)]
    steps = np.diff(np.sort(column))
    if any(np.ptp(g) == 0 for g in groups) or np.ptp(steps) <= 1e-3 * steps.mean():
        return None
    middles, spreads = (np.array([f(g) for g in groups]) for f in (np.median, np.std))
    order = np.argsort(middles)
    return float(np.min(np.diff(middles[order]) * 2 / (spreads[order][1:] + spreads[order][:-1])))


def _guesses(column: np.ndarray, labels: np.ndarray, classes: int) -> list[np.ndarray]:
    values, inverse = np.unique(column, return_inverse=True)
    if len(values) * SAMPLES_A_VALUE <= len(column):
        votes = np.zeros((len(values), classes))
        np.add.at(votes, (inverse, labels), 1)
        own = votes[inverse]
        own[np.arange(len(labels)), labels] -= 1
        return [np.where(own.any(axis=1), own.argmax(axis=1), -1)]
    order = np.argsort(column, kind="stable")
    ordered, seen = column[order], labels[order]
    found = [_nearest(ordered, seen)]
    if classes <= MOST_VOTED:
        found.append(_vote(seen, classes, found[0]))
    guesses = []
    for guess in found:
        back = np.empty_like(guess)
        back[order] = guess
        guesses.append(back)
    return guesses


def _nearest(ordered: np.ndarray, labels: np.ndarray) -> np.ndarray:
    gaps = np.diff(ordered)
    left, right = np.concatenate([[np.inf], gaps]), np.concatenate([gaps, [np.inf]])
    return np.where(left <= right, np.roll(labels, 1), np.roll(labels, -1))


def _vote(labels: np.ndarray, classes: int, decides: np.ndarray) -> np.ndarray:
    """Of the neighbours in order; the nearest one's vote counts a little more, so that ties go to it."""
    one_hot = np.eye(classes)[labels]
    sums = np.concatenate([np.zeros((1, classes)), np.cumsum(one_hot, axis=0)])
    places = np.arange(len(labels))
    low, high = np.maximum(places - EITHER_SIDE, 0), np.minimum(places + EITHER_SIDE + 1, len(labels))
    votes = sums[high] - sums[low] - one_hot + 0.5 * np.eye(classes)[decides]
    return np.asarray(votes.argmax(axis=1))


def _balanced(wrong: np.ndarray, labels: np.ndarray, classes: int) -> float:
    return float(np.mean([wrong[labels == k].mean() for k in range(classes)]))


def _neighbour_means(ordered: np.ndarray) -> np.ndarray:
    """Of two samples on either side, the sample itself left out."""
    padded = np.pad(ordered.astype(np.float64), 2, mode="reflect")
    return np.asarray((padded[:-4] + padded[1:-3] + padded[3:-1] + padded[4:]) / 4)


def _group_means(column: np.ndarray, target: np.ndarray) -> np.ndarray:
    _, inverse, counts = np.unique(column, return_inverse=True, return_counts=True)
    sums = np.bincount(inverse, weights=target)
    left = (sums[inverse] - target) / np.maximum(counts[inverse] - 1, 1)
    return np.where(counts[inverse] > 1, left, target.mean())


def _squared(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sum(a * a) * np.sum(b * b))
    return float(np.sum(a * b)) ** 2 / size if size > 0 else 0.0


def _held_out_r2(predicted: np.ndarray, target: np.ndarray) -> float:
    left = float(np.square(target - predicted).sum()) / float(np.square(target - target.mean()).sum())
    return max(0.0, 1 - left)
