"""Real data for cases: scikit-learn's sets, in float32, scaled as a careful user would."""

from functools import cache

import numpy as np
from sklearn import datasets


@cache
def digits() -> tuple[np.ndarray, np.ndarray]:
    """1,797 images of 8×8 in [0, 1], flattened; ten classes."""
    x, y = datasets.load_digits(return_X_y=True)
    return (x / 16).astype(np.float32), y.astype(np.int64)


@cache
def digit_images() -> tuple[np.ndarray, np.ndarray]:
    """The digits as images of shape (n, 1, 8, 8)."""
    x, y = digits()
    return x.reshape(-1, 1, 8, 8), y


@cache
def cancer() -> tuple[np.ndarray, np.ndarray]:
    """569 rows of 30 standardised columns; two classes."""
    x, y = datasets.load_breast_cancer(return_X_y=True)
    return _standardised(x), y.astype(np.int64)


@cache
def wine() -> tuple[np.ndarray, np.ndarray]:
    """178 rows of 13 standardised columns; three classes."""
    x, y = datasets.load_wine(return_X_y=True)
    return _standardised(x), y.astype(np.int64)


@cache
def diabetes() -> tuple[np.ndarray, np.ndarray]:
    """442 rows of 10 standardised columns; a standardised real target of shape (n, 1)."""
    x, y = datasets.load_diabetes(return_X_y=True)
    return _standardised(x), _standardised(y[:, None])


def _standardised(x: np.ndarray) -> np.ndarray:
    return ((x - x.mean(0)) / x.std(0)).astype(np.float32)
