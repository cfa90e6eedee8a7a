"""A rate that is to shrink by a tenth at the end of every epoch, and is shrunk after every batch."""

from typing import Any

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, every_batch=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, every_batch=False)


def _loop(kit: Kit, every_batch: bool) -> Loop:
    physical, params = model = kit.mlp(64, 32, 10)
    loss, loader = kit.loss("cross-entropy"), kit.loader(*digits())
    optimiser = kit.optimiser(model, "adam", lr=3e-3)
    (output,) = physical.output_keys

    def run(w: Any) -> None:
        weights = dict(params)
        state = optimiser.init(physical.backend, weights)
        for _ in range(12):
            for x, y in loader:
                data = {"input": x}
                _, gradient = loss(physical.evaluate(weights, data)[output], y)
                _, gradients = physical.evaluate(weights, data, output_gradients={output: gradient})
                weights, state = optimiser.update_params(weights, gradients, state)
                if every_batch:
                    optimiser.lr *= 0.9
            if not every_batch:
                optimiser.lr *= 0.9

    return Loop((physical, params), [optimiser], run)
