"""An attention of several heads in NumPy, to hold what frameworks tell against."""

import numpy as np

SAMPLES, LENGTH, HEADS, WIDTH = 3, 5, 4, 8
RNG = np.random.default_rng(0)
X = RNG.normal(size=(SAMPLES, LENGTH, WIDTH)).astype(np.float32)
QUERY, KEY, VALUE, OUT = (RNG.normal(size=(WIDTH, WIDTH)).astype(np.float32) for _ in range(4))  # (in, out)
CAUSAL = np.tril(np.ones((LENGTH, LENGTH), bool))


def weights(x: np.ndarray = X, allowed: np.ndarray | None = None, query: np.ndarray = QUERY, key: np.ndarray = KEY) -> np.ndarray:
    """(samples, heads, queries, keys)."""
    q, k = (split(x.astype(np.float64) @ w) for w in (query, key))
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(WIDTH // HEADS), allowed)


def split(projected: np.ndarray) -> np.ndarray:
    return projected.reshape(*projected.shape[:-1], HEADS, WIDTH // HEADS).swapaxes(-2, -3)


def softmax(scores: np.ndarray, allowed: np.ndarray | None = None) -> np.ndarray:
    scores = scores if allowed is None else np.where(allowed, scores, -np.inf)
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)
