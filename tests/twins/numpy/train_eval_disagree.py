"""A batch normalisation that forgets to keep its running statistics, against one that keeps them."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.kits.numpy_layers import Layer
from tests.material import digits


class Normalise(Layer):
    def __init__(self, width: int, keeps: bool) -> None:
        super().__init__()
        self.mean, self.variance = np.zeros(width, np.float32), np.ones(width, np.float32)
        self.keeps = keeps

    def forward(self, x: np.ndarray) -> np.ndarray:
        mean, variance = self.mean, self.variance
        if self.training:
            mean, variance = x.mean(0), x.var(0)
            if self.keeps:
                self.mean += 0.1 * (mean - self.mean)
                self.variance += 0.1 * (variance - self.variance)
        self.scale = 1 / np.sqrt(variance + np.float32(1e-5))
        self.y = (x - mean) * self.scale
        return self.y

    def backward(self, grad: np.ndarray) -> np.ndarray:
        if not self.training:
            return grad * self.scale
        return self.scale * (grad - grad.mean(0) - self.y * (grad * self.y).mean(0))


def sick(kit: Kit) -> Subject:
    return _training(kit, keeps=False)


def healthy(kit: Kit) -> Subject:
    return _training(kit, keeps=True)


def _training(kit: Kit, keeps: bool) -> Subject:
    blocks = [(kit.linear(inputs, 48), Normalise(48, keeps), kit.activation("relu")) for inputs in (64, 48)]
    model = kit.sequential(*blocks[0], *blocks[1], kit.linear(48, 10))
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))
