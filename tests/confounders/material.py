"""More data than `tests.material` has: text, sequences, tags, ratings, masks and generated tables, all scaled with care."""

from functools import cache
from pathlib import Path

import numpy as np
from sklearn import datasets

from tests.material import digit_images, digits

Pair = tuple[np.ndarray, np.ndarray]

TEXT = (Path(__file__).parents[2] / "LICENSE").read_text()
LETTERS = sorted(set(TEXT))
WORDS = 30  # ids in `sentences`, 0 is padding
TOKENS = 20  # ids in `tagged`, 0 is padding
USERS, ITEMS = 50, 40


@cache
def letters(length: int = 24, stride: int = 8) -> Pair:
    """Windows of the licence as ids, none of them twice, and the same windows one letter later."""
    ids = np.array([LETTERS.index(c) for c in TEXT], dtype=np.int64)
    longer = np.stack([ids[s : s + length + 1] for s in range(0, len(ids) - length - 1, stride)])
    _, first = np.unique(longer[:, :-1], axis=0, return_index=True)
    longer = longer[np.sort(first)]
    return longer[:, :-1], longer[:, 1:]


@cache
def waves(count: int = 800, length: int = 24) -> Pair:
    """Noisy waves (n, length, 1) of three frequencies; which one it is."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, count)
    phase = rng.uniform(0, 2 * np.pi, (count, 1))
    angle = np.arange(length) * np.array([0.25, 0.6, 1.1])[y][:, None] + phase
    x = np.sqrt(2) * np.sin(angle) + rng.normal(0, 0.15, (count, length))
    return x[..., None].astype(np.float32), y.astype(np.int64)


@cache
def windows(count: int = 800, length: int = 20) -> Pair:
    """Windows (n, length, 1) of waves that differ in speed and phase; the value that follows, (n, 1)."""
    rng = np.random.default_rng(2)
    speed, phase = rng.uniform(0.2, 0.8, (count, 1)), rng.uniform(0, 2 * np.pi, (count, 1))
    series = np.sqrt(2) * np.sin(np.arange(length + 1) * speed + phase) + rng.normal(0, 0.05, (count, length + 1))
    series = series.astype(np.float32)
    return series[:, :-1, None], series[:, -1:]


@cache
def continued(count: int = 800, length: int = 20) -> Pair:
    """The same windows, each with itself one step later as the target: (n, length, 1) twice."""
    x, following = windows(count, length)
    return x, np.concatenate([x[:, 1:], following[:, :, None]], axis=1)


@cache
def sentences(count: int = 1000, length: int = 14) -> Pair:
    """Padded word ids (n, length); 1 where words from the upper half of the vocabulary prevail."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, count)
    x = np.zeros((count, length), dtype=np.int64)
    for row, label in zip(x, y, strict=True):
        size = rng.integers(length // 2, length + 1)
        upper = rng.random(size) < (0.75 if label else 0.25)
        row[:size] = np.where(upper, rng.integers(WORDS // 2, WORDS, size), rng.integers(1, WORDS // 2, size))
    return x, y.astype(np.int64)


@cache
def tagged(count: int = 800, length: int = 12, shortest: int = 12) -> Pair:
    """Token ids and tags 1..3, which depend on a token and the one before it; 0 is padding on both sides."""
    rng = np.random.default_rng(4)
    x = rng.integers(1, TOKENS, (count, length))
    before = np.concatenate([np.zeros((count, 1), dtype=np.int64), x[:, :-1]], axis=1)
    y = 1 + (x + (before < TOKENS // 2)) % 3
    padding = np.arange(length) >= rng.integers(shortest, length + 1, (count, 1))
    return np.where(padding, 0, x).astype(np.int64), np.where(padding, 0, y).astype(np.int64)


@cache
def ratings(count: int = 1500) -> Pair:
    """(user, item) ids and a standardised rating (n, 1) of low rank."""
    rng = np.random.default_rng(5)
    users, items = rng.normal(size=(USERS, 2)) + 1, rng.normal(size=(ITEMS, 2)) + 1
    pairs = np.stack(np.divmod(rng.permutation(USERS * ITEMS)[:count], ITEMS), axis=1)
    y = (users[pairs[:, 0]] * items[pairs[:, 1]]).sum(1, keepdims=True) + rng.normal(0, 0.1, (count, 1))
    return pairs.astype(np.int64), _standardised(y)


@cache
def facts() -> Pair:
    """Digits with four facts about each as float targets (n, 4)."""
    x, y = digits()
    told = [y % 2 == 0, y > 4, np.isin(y, (0, 6, 8, 9)), np.isin(y, (2, 3, 5, 7, 1))]
    return x, np.stack(told, axis=1).astype(np.float32)


@cache
def masks() -> Pair:
    """Noisy digit images (n, 1, 8, 8) and the stroke of each as a float mask of the same shape."""
    x, _ = digit_images()
    noise = np.random.default_rng(6).normal(0, 0.15, x.shape)
    return (x + noise).astype(np.float32), (x > 0.4).astype(np.float32)


@cache
def colours() -> Pair:
    """Digits in a random colour each, (n, 3, 8, 8) in [0, 1]; the digit."""
    x, y = digit_images()
    tint = np.random.default_rng(7).uniform(0.4, 1.0, (len(x), 3, 1, 1))
    return (x * tint).astype(np.float32), y


@cache
def table(count: int = 1000, classes: int = 4) -> Pair:
    x, y = datasets.make_classification(
        count, 20, n_informative=10, n_redundant=2, n_classes=classes, class_sep=1.8, flip_y=0.0, random_state=8
    )
    return _standardised(x), y.astype(np.int64)


@cache
def moons(count: int = 800) -> Pair:
    x, y = datasets.make_moons(count, noise=0.1, random_state=9)
    return _standardised(x), y.astype(np.int64)


@cache
def friedman(count: int = 800) -> Pair:
    """Ten uniform columns, standardised; a smooth curved target (n, 1), standardised."""
    x, y = datasets.make_friedman1(count, noise=0.3, random_state=10)
    return _standardised(x), _standardised(y[:, None])


@cache
def plane(count: int = 800, targets: int = 3) -> Pair:
    """A linear task with some noise: 12 columns to a few standardised targets."""
    x, y = datasets.make_regression(count, 12, n_informative=8, n_targets=targets, noise=5.0, random_state=11)
    return _standardised(x), _standardised(y.reshape(count, targets))


def cut(x: np.ndarray, y: np.ndarray, seed: int = 0) -> tuple[Pair, Pair]:
    """A random four fifths and the rest, for those who build their own loaders."""
    order = np.random.default_rng(seed).permutation(len(x))
    head, tail = order[: len(x) * 4 // 5], order[len(x) * 4 // 5 :]
    return (x[head], y[head]), (x[tail], y[tail])


def _standardised(x: np.ndarray) -> np.ndarray:
    return ((x - x.mean(0)) / x.std(0)).astype(np.float32)
