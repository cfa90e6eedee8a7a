"""Gradients that a loop adds up in a dict of its own: it is emptied after every update, or never."""

from typing import Any

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, empties=False)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, empties=True)


def _loop(kit: Kit, empties: bool) -> Loop:
    physical, params = model = kit.mlp(64, 32, 10)
    loss, loader = kit.loss("cross-entropy"), kit.loader(*digits())
    optimiser = kit.optimiser(model, "sgd", lr=0.3)
    (output,) = physical.output_keys

    def run(w: Any) -> None:
        weights = dict(params)
        state = optimiser.init(physical.backend, weights)
        summed: dict[str, Any] = {}
        for _ in range(8):
            for x, y in loader:
                data = {"input": x}
                _, gradient = loss(physical.evaluate(weights, data)[output], y)
                _, gradients = physical.evaluate(weights, data, output_gradients={output: gradient})
                for key, value in gradients.items():
                    summed[key] = summed.get(key, 0) + value
                weights, state = optimiser.update_params(weights, summed, state)
                if empties:
                    summed = {}

    return Loop((physical, params), [optimiser], run)
