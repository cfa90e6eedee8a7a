"""A network written by hand in NumPy. It learns something, so its backward pass looks right. It is not.

sleuth examine examples/numpy_network.py:training
sleuth names: gradient-wrong
"""

import numpy as np
from sklearn.datasets import load_digits


class Network:
    def __init__(self, hidden: int = 32) -> None:
        rng = np.random.default_rng(0)
        self.w1 = rng.normal(0, np.sqrt(2 / 64), (64, hidden))
        self.b1 = np.zeros(hidden)
        self.w2 = rng.normal(0, np.sqrt(2 / hidden), (hidden, 10))
        self.b2 = np.zeros(10)

    def parameters(self) -> dict[str, np.ndarray]:
        return {"w1": self.w1, "b1": self.b1, "w2": self.w2, "b2": self.b2}

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.x = x
        self.hidden = np.maximum(x @ self.w1 + self.b1, 0)
        return self.hidden @ self.w2 + self.b2

    def compute_loss(self, x: np.ndarray, y: np.ndarray) -> float:
        scores = self.forward(x)
        scores = scores - scores.max(axis=1, keepdims=True)
        log_p = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        self.d_scores = (np.exp(log_p) - np.eye(10)[y]) / len(y)
        return float(-log_p[np.arange(len(y)), y].mean())

    def backward(self) -> dict[str, np.ndarray]:
        # Where the ReLU gave zero, nothing flows back: d_hidden must be multiplied by (self.hidden > 0).
        d_hidden = self.d_scores @ self.w2.T
        return {
            "w1": self.x.T @ d_hidden,
            "b1": d_hidden.sum(axis=0),
            "w2": self.hidden.T @ self.d_scores,
            "b2": self.d_scores.sum(axis=0),
        }


def training():
    images, labels = load_digits(return_X_y=True)
    return {"model": Network(), "train": (images / 16, labels)}
