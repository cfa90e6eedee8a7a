"""A penalty on large weights with the wrong sign, and with the right one."""

from itertools import islice, repeat
from typing import Any

import numpy as np

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


class PenalisedLoss:
    """Of the scores, and of the squares of all weights; the gradient is that by the scores."""

    def __init__(self, model: Any, criterion: Any, factor: float) -> None:
        self.model, self.criterion, self.factor = model, criterion, factor

    def __call__(self, scores: np.ndarray, target: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = self.criterion(scores, target)
        return value + self.factor * sum(float((a**2).sum()) for _, a in self.model.parameters()), gradient


def training(kit: Kit, sign: float) -> Loop:
    model = kit.mlp(64, 32, 10, activation="tanh")
    loss = PenalisedLoss(model, kit.loss("cross-entropy"), sign * 1e-2)
    optimiser = kit.optimiser(model, "sgd", lr=0.5)
    loader = kit.loader(*digits())

    def run(w: Any) -> None:
        for x, y in islice((batch for epoch in repeat(loader) for batch in epoch), 400):
            _, gradient = loss(model.forward(x), y)
            gradients = model.backward(gradient)
            for name, array in model.parameters():
                gradients[name] = gradients[name] + sign * 2e-2 * array
            optimiser.step(gradients)

    return Loop(model, [optimiser], run, {"every": 10})


def sick(kit: Kit) -> Loop:
    return training(kit, sign=-1.0)


def healthy(kit: Kit) -> Loop:
    return training(kit, sign=0.1)
