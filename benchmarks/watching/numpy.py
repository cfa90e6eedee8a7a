"""Trainings by hand in NumPy."""

from itertools import pairwise

import numpy as np

from benchmarks.watching.training import Training, looped


class Dense:
    def __init__(self, inputs: int, outputs: int) -> None:
        rng = np.random.default_rng(inputs)
        self.W = (rng.normal(size=(inputs, outputs)) / np.sqrt(inputs)).astype(np.float32)
        self.b = np.zeros(outputs, np.float32)

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.x = x
        return x @ self.W + self.b

    def backward(self, grad: np.ndarray) -> np.ndarray:
        self.dW, self.db = self.x.T @ grad, grad.sum(0)
        return grad @ self.W.T


class ReLU:
    def forward(self, x: np.ndarray) -> np.ndarray:
        self.on = x > 0
        return x * self.on

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return grad * self.on


class Network:
    def __init__(self, widths: tuple[int, ...]) -> None:
        layers: list[Dense | ReLU] = []
        for one, other in pairwise(widths):
            layers += [Dense(one, other), ReLU()]
        self.layers = layers[:-1]

    def forward(self, x: np.ndarray) -> np.ndarray:
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def backward(self, grad: np.ndarray) -> None:
        for layer in reversed(self.layers):
            grad = layer.backward(grad)

    def update(self, lr: float) -> None:
        for layer in self.layers:
            if isinstance(layer, Dense):
                layer.W -= lr * layer.dW
                layer.b -= lr * layer.db


class CrossEntropy:
    def __call__(self, scores: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
        shares = np.exp(scores - scores.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        rows = np.arange(len(y))
        value = float(-np.log(shares[rows, y] + 1e-12).mean())
        shares[rows, y] -= 1
        return value, shares / len(y)


def training(widths: tuple[int, ...], batch: int) -> Training:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(batch, widths[0])).astype(np.float32)
    y = rng.integers(0, widths[-1], batch)
    network, loss = Network(widths), CrossEntropy()

    def step() -> None:
        _, gradient = loss(network.forward(x), y)
        network.backward(gradient)
        network.update(1e-2)

    return looped(network, 1e-2, step)


TRAININGS = {
    "MLP 64-64-10, batch 32": lambda: training((64, 64, 10), 32),
    "MLP 784-512-256-10, batch 128": lambda: training((784, 512, 256, 10), 128),
}
