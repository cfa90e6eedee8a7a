"""Counting bright pixels with a Poisson loss: the logarithm of a rate that ReLU sets to zero, or of one kept above it."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Poisson:
    def __init__(self, smallest: float) -> None:
        self.smallest = np.float32(smallest)

    def __call__(self, output: np.ndarray, count: np.ndarray) -> tuple[float, np.ndarray]:
        rate = np.maximum(output, 0) + self.smallest
        value = (rate - count * np.log(rate)).mean()
        return float(value), ((1 - count / rate) * (output > 0) / output.size).astype(output.dtype)


def training(kit: Kit, smallest: float, bias: float) -> Subject:
    x, _ = digits()
    counts = (x[:, 32:] > 0.9).sum(1, keepdims=True).astype(np.float32)
    _, params = model = kit.mlp(64, 32, 1)
    params[list(params)[-1]][...] = bias
    return Subject(model, kit.loader(x, counts), Poisson(smallest), kit.optimiser(model, "adam", lr=1e-3))


def sick(kit: Kit) -> Subject:
    return training(kit, smallest=0.0, bias=0.0)


def healthy(kit: Kit) -> Subject:
    return training(kit, smallest=0.1, bias=0.5)
