"""What watching costs around hand-written NumPy: plain and watched steps of one training, taken in turns in one process.

Run: ./dev bench watch_numpy        (--steps N, --every N)
"""

import argparse
import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

import sleuth

WARM_UP = 40


def training(widths: tuple[int, ...], batch: int) -> tuple[Any, Callable[[], None]]:
    """With classes of its own each time: a watch wraps those of its network, and no others."""

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

    rng = np.random.default_rng(0)
    x = rng.normal(size=(batch, widths[0])).astype(np.float32)
    y = rng.integers(0, widths[-1], batch)
    network, loss = Network(widths), CrossEntropy()

    def step() -> None:
        _, gradient = loss(network.forward(x), y)
        network.backward(gradient)
        network.update(1e-2)

    return network, step


def seconds(step: Callable[[], None]) -> float:
    began = time.perf_counter()
    step()
    return time.perf_counter() - began


def in_turns(widths: tuple[int, ...], batch: int, steps: int, every: int | None) -> tuple[list[float], list[float], int]:
    """Two trainings alike; which of a pair goes first changes."""
    plain: list[float] = []
    watched: list[float] = []
    _, plain_step = training(widths, batch)
    network, watched_step = training(widths, batch)
    with sleuth.watch(network, 1e-2, directory=None, quiet=True, every=every) as w:
        for i in range(steps + WARM_UP):
            for which in (0, 1) if i % 2 else (1, 0):
                found = seconds(watched_step if which else plain_step)
                if i >= WARM_UP:
                    (watched if which else plain).append(found)
    return plain, watched, w.watching.looks


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--every", type=int, default=None)
    given = parser.parse_args()
    for widths, batch in (((64, 64, 10), 32), ((784, 512, 256, 10), 128)):
        plain, watched, looks = in_turns(widths, batch, given.steps, given.every)
        pairs = statistics.median(w / p for w, p in zip(watched, plain, strict=True))
        whole = sum(watched) / sum(plain)
        print(
            f"{'-'.join(map(str, widths))} batch {batch}: plain {1e3 * statistics.median(plain):.2f} ms, median of pairs "
            f"{pairs:.3f}, all steps {whole:.3f}, {looks} looks in {given.steps + WARM_UP} watched steps"
        )


if __name__ == "__main__":
    main()
