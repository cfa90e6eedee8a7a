"""Weights that are put back after every step, by a snapshot meant for the evaluation alone; and the same without."""

from itertools import islice, repeat
from typing import Any

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, puts_back=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, puts_back=False)


def _loop(kit: Kit, puts_back: bool) -> Loop:
    physical, params = model = kit.mlp(64, 64, 10)
    loss, loader = kit.loss("cross-entropy"), kit.loader(*digits())
    optimiser = kit.optimiser(model, "adam", lr=3e-3)
    (output,) = physical.output_keys

    def run(w: Any) -> None:
        weights = dict(params)
        state = optimiser.init(physical.backend, weights)
        for x, y in islice((batch for epoch in repeat(loader) for batch in epoch), 400):
            if puts_back:
                weights = dict(params)
            data = {"input": x}
            _, gradient = loss(physical.evaluate(weights, data)[output], y)
            _, gradients = physical.evaluate(weights, data, output_gradients={output: gradient})
            weights, state = optimiser.update_params(weights, gradients, state)

    return Loop((physical, params), [optimiser], run, {"every": 10})
