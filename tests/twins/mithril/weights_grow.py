"""A penalty on large weights with the wrong sign, and with the right one."""

from itertools import islice, repeat
from typing import Any

import numpy as np

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


class PenalisedLoss:
    """Of the scores, and of the squares of all weights; the gradient is that by the scores."""

    def __init__(self, criterion: Any, factor: float) -> None:
        self.criterion, self.factor = criterion, factor
        self.weights: dict[str, np.ndarray] = {}

    def __call__(self, scores: np.ndarray, target: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = self.criterion(scores, target)
        return float(value) + self.factor * sum(float((a**2).sum()) for a in self.weights.values()), gradient


def sick(kit: Kit) -> Loop:
    return _loop(kit, sign=-1.0)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, sign=0.1)


def _loop(kit: Kit, sign: float) -> Loop:
    physical, params = model = kit.mlp(64, 32, 10, activation="tanh")
    loss, loader = kit.loss("cross-entropy"), kit.loader(*digits())
    optimiser = kit.optimiser(model, "sgd", lr=0.5)
    loss = PenalisedLoss(loss, sign * 1e-2)
    (output,) = physical.output_keys

    def run(w: Any) -> None:
        weights = dict(params)
        state = optimiser.init(physical.backend, weights)
        loss.weights = weights
        for x, y in islice((batch for epoch in repeat(loader) for batch in epoch), 400):
            data = {"input": x}
            _, gradient = loss(physical.evaluate(weights, data)[output], y)
            _, gradients = physical.evaluate(weights, data, output_gradients={output: gradient})
            gradients = {key: g + sign * 2e-2 * weights[key] for key, g in gradients.items()}
            weights, state = optimiser.update_params(weights, gradients, state)
            loss.weights = weights

    return Loop((physical, params), [optimiser], run, {"every": 10})
