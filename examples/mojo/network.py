"""A network whose layers are written in Mojo (layers.mojo), forward and backward, and called with NumPy arrays.

sleuth examine examples/mojo/network.py:training
sleuth examine examples/mojo/network.py:sick        names: gradient-wrong
"""

import sys
from pathlib import Path

import mojo.importer  # noqa: F401  from now on `import layers` compiles layers.mojo
import numpy as np
from sklearn.datasets import load_digits

sys.path.insert(0, str(Path(__file__).parent))

import layers


class Network:
    def __init__(self, right: bool = True, hidden: int = 32) -> None:
        rng = np.random.default_rng(0)
        self.w1 = rng.normal(0, np.sqrt(2 / 64), (64, hidden)).astype(np.float32)
        self.b1 = np.zeros(hidden, np.float32)
        self.w2 = rng.normal(0, np.sqrt(1 / hidden), (hidden, 10)).astype(np.float32)
        self.b2 = np.zeros(10, np.float32)
        self.right = right

    def parameters(self) -> dict[str, np.ndarray]:
        return {"w1": self.w1, "b1": self.b1, "w2": self.w2, "b2": self.b2}

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.x = np.ascontiguousarray(x, self.w1.dtype)
        self.z = layers.dense(self.x, self.w1, self.b1, np.empty((len(x), len(self.b1)), self.w1.dtype))
        self.h = layers.relu(self.z, np.empty_like(self.z))
        return layers.dense(self.h, self.w2, self.b2, np.empty((len(x), len(self.b2)), self.w1.dtype))

    def backward(self, grad: np.ndarray) -> dict[str, np.ndarray]:
        grads = {name: np.empty_like(array) for name, array in self.parameters().items()}
        dense_backward = layers.dense_backward if self.right else layers.dense_backward_wrong
        dy = np.ascontiguousarray(grad, self.w1.dtype)
        dh = dense_backward(self.h, self.w2, dy, np.empty_like(self.h), grads["w2"], grads["b2"])
        dz = layers.relu_backward(self.z, dh, np.empty_like(self.z))
        layers.dense_backward(self.x, self.w1, dz, np.empty_like(self.x), grads["w1"], grads["b1"])
        return grads


def cross_entropy(scores: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    scores = scores - scores.max(axis=1, keepdims=True)
    log_p = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return float(-log_p[np.arange(len(y)), y].mean()), (np.exp(log_p) - np.eye(10)[y]) / len(y)


def training(right: bool = True) -> dict:
    images, labels = load_digits(return_X_y=True)
    return {
        "model": Network(right),
        "train": ((images / 8 - 1).astype(np.float32), labels),
        "loss": cross_entropy,
        "optimizer": 0.2,
    }


def sick() -> dict:
    """The bias of the last layer gets the gradient of one sample."""
    return training(right=False)
