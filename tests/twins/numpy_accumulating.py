"""A network by hand whose layers add their gradients up, as for several batches a step, until somebody clears them."""

import numpy as np


class Dense:
    def __init__(self, inputs: int, outputs: int) -> None:
        bound = 1 / np.sqrt(inputs)
        self.W = np.random.uniform(-bound, bound, (inputs, outputs)).astype(np.float32)
        self.b = np.zeros(outputs, np.float32)
        self.dW, self.db = np.zeros_like(self.W), np.zeros_like(self.b)

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.x = x
        return x @ self.W + self.b

    def backward(self, grad: np.ndarray) -> np.ndarray:
        self.dW += self.x.T @ grad
        self.db += grad.sum(0)
        return grad @ self.W.T


class ReLU:
    def forward(self, x: np.ndarray) -> np.ndarray:
        self.on = x > 0
        return x * self.on

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return grad * self.on


class Network:
    def __init__(self, *widths: int) -> None:
        self.layers = [Dense(widths[0], widths[1]), ReLU(), Dense(widths[1], widths[2])]

    def dense(self) -> list[Dense]:
        return [layer for layer in self.layers if isinstance(layer, Dense)]

    def forward(self, x: np.ndarray) -> np.ndarray:
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def backward(self, grad: np.ndarray) -> None:
        for layer in reversed(self.layers):
            grad = layer.backward(grad)

    def zero_grad(self) -> None:
        for layer in self.dense():
            layer.dW[...] = 0
            layer.db[...] = 0

    def update(self, lr: float) -> None:
        for layer in self.dense():
            layer.W -= lr * layer.dW
            layer.b -= lr * layer.db


def clip_gradients(network: Network, most: float) -> None:
    gradients = [g for layer in network.dense() for g in (layer.dW, layer.db)]
    norm = float(np.sqrt(sum((g**2).sum() for g in gradients)))
    for gradient in gradients:
        gradient *= min(1.0, most / (norm + 1e-6))
