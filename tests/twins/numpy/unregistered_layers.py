"""Hidden layers that parameters() leaves out, so that no update reaches them, against the same in it."""

from typing import Any

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Net:
    def __init__(self, kit: Kit, all_listed: bool) -> None:
        self.hidden = [kit.linear(64, 64), kit.linear(64, 64)]
        self.relus = [kit.activation("relu"), kit.activation("relu")]
        self.head = kit.linear(64, 10)
        self.all_listed = all_listed

    def trained(self) -> dict[str, Any]:
        hidden = {f"hidden.{i}": layer for i, layer in enumerate(self.hidden)} if self.all_listed else {}
        return {**hidden, "head": self.head}

    def parameters(self) -> list[tuple[str, np.ndarray]]:
        return [(f"{path}.{name}", getattr(layer, name)) for path, layer in self.trained().items() for name in layer.names]

    def forward(self, x: np.ndarray) -> np.ndarray:
        for layer, relu in zip(self.hidden, self.relus, strict=True):
            x = relu.forward(layer.forward(x))
        return self.head.forward(x)

    def backward(self, grad: np.ndarray) -> dict[str, np.ndarray]:
        grad = self.head.backward(grad)
        for layer, relu in zip(reversed(self.hidden), reversed(self.relus), strict=True):
            grad = layer.backward(relu.backward(grad))
        return {f"{path}.{name}": layer.gradients[name] for path, layer in self.trained().items() for name in layer.names}


def sick(kit: Kit) -> Subject:
    return _training(kit, all_listed=False)


def healthy(kit: Kit) -> Subject:
    return _training(kit, all_listed=True)


def _training(kit: Kit, all_listed: bool) -> Subject:
    model = Net(kit, all_listed)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))
