"""scikit-learn's digits as arrays in the shapes of well-known sets that cannot be downloaded here."""

import numpy as np
from sklearn.datasets import load_digits

TRAINING = 1437


def mnist(train: bool) -> tuple[np.ndarray, np.ndarray]:
    """Grey pictures of 28 x 28 bytes, and their classes: 1437 for training and 360 others."""
    digits = load_digits()
    order = np.random.RandomState(0).permutation(len(digits.target))
    part = order[:TRAINING] if train else order[TRAINING:]
    large = np.kron(digits.images[part], np.ones((3, 3))) * (255 / 16)
    return np.pad(large, ((0, 0), (2, 2), (2, 2))).astype(np.uint8), digits.target[part].astype(np.int64)


def both() -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """As `keras.datasets.mnist.load_data` gives them."""
    return mnist(True), mnist(False)


def coloured(train: bool) -> tuple[np.ndarray, np.ndarray]:
    """Pictures of 32 x 32 x 3 bytes: each digit in a colour of its own before noise."""
    grey, classes = mnist(train)
    chance = np.random.RandomState(int(train))
    shown = np.pad(grey, ((0, 0), (2, 2), (2, 2)))[..., None] / 255.0
    colours = chance.uniform(0.5, 1.0, (len(grey), 1, 1, 3))
    noise = chance.uniform(0.0, 0.3, (len(grey), 32, 32, 3))
    return (255 * (shown * colours + (1 - shown) * noise)).astype(np.uint8), classes
