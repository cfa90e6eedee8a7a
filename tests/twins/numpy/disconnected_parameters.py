"""A backward that stops at the head, so that only the head has gradients, against one that goes through all layers."""

from typing import Any

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Net:
    def __init__(self, features: Any, head: Any, stops: bool) -> None:
        self.features, self.head, self.stops = features, head, stops

    def parameters(self) -> list[tuple[str, np.ndarray]]:
        features = [(f"features.{name}", array) for name, array in self.features.parameters()]
        return [*features, ("head.weight", self.head.weight), ("head.bias", self.head.bias)]

    def forward(self, x: np.ndarray) -> np.ndarray:
        return self.head.forward(self.features.forward(x))

    def backward(self, grad: np.ndarray) -> dict[str, np.ndarray]:
        passed = self.head.backward(grad)
        gradients = {f"head.{name}": gradient for name, gradient in self.head.gradients.items()}
        if self.stops:
            return gradients
        return {f"features.{name}": g for name, g in self.features.backward(passed).items()} | gradients


class SGD:
    def __init__(self, params: list[tuple[str, np.ndarray]], lr: float) -> None:
        self.params, self.lr = params, lr

    def step(self, grads: dict[str, np.ndarray]) -> None:
        for name, array in self.params:
            if name in grads:
                array -= self.lr * grads[name]


def sick(kit: Kit) -> Subject:
    return _training(kit, stops=True)


def healthy(kit: Kit) -> Subject:
    return _training(kit, stops=False)


def _training(kit: Kit, stops: bool) -> Subject:
    features = kit.sequential(kit.linear(64, 64), kit.activation("relu"), kit.linear(64, 32), kit.activation("relu"))
    model = Net(features, kit.linear(32, 10), stops)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), SGD(model.parameters(), lr=0.2))
