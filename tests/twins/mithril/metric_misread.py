"""Accuracy of each epoch: the right answers are counted on from epoch to epoch, or from zero."""

from typing import Any

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, reset=False)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, reset=True)


def _loop(kit: Kit, reset: bool) -> Loop:
    physical, params = model = kit.mlp(64, 32, 10)
    loss, loader = kit.loss("cross-entropy"), kit.loader(*digits())
    optimiser = kit.optimiser(model, "adam", lr=2e-3)
    (output,) = physical.output_keys

    def run(w: Any) -> None:
        weights = dict(params)
        state = optimiser.init(physical.backend, weights)
        right = 0
        for _ in range(8):
            samples = 0
            if reset:
                right = 0
            for x, y in loader:
                data = {"input": x}
                scores = physical.evaluate(weights, data)[output]
                _, gradient = loss(scores, y)
                _, gradients = physical.evaluate(weights, data, output_gradients={output: gradient})
                weights, state = optimiser.update_params(weights, gradients, state)
                right += int((scores.argmax(1) == y).sum())
                samples += len(y)
            w.log(accuracy=right / samples)

    return Loop((physical, params), [optimiser], run)
