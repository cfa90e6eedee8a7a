"""A learning rate that jumps for a few steps in the middle of the training switches most ReLUs off for good."""

from itertools import islice, repeat
from typing import Any

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, jump=25.0)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, jump=1.0)


def _loop(kit: Kit, jump: float) -> Loop:
    physical, params = model = kit.mlp(64, 64, 32, 10)
    loss, loader = kit.loss("cross-entropy"), kit.loader(*digits())
    optimiser = kit.optimiser(model, "sgd", lr=0.1, momentum=0.9)
    (output,) = physical.output_keys

    def run(w: Any) -> None:
        weights = dict(params)
        state = optimiser.init(physical.backend, weights)
        batches = (batch for epoch in repeat(loader) for batch in epoch)
        for i, (x, y) in enumerate(islice(batches, 640)):
            optimiser.lr = 0.1 * (jump if 250 <= i < 254 else 1.0)
            data = {"input": x}
            _, gradient = loss(physical.evaluate(weights, data)[output], y)
            _, gradients = physical.evaluate(weights, data, output_gradients={output: gradient})
            weights, state = optimiser.update_params(weights, gradients, state)

    return Loop((physical, params), [optimiser], run, {"every": 4})
