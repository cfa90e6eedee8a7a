"""Four batches to an update: the gradients are added up whole, or a quarter of each."""

from typing import Any

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
PARTS = 4


def sick(kit: Kit) -> Loop:
    return _loop(kit, divided=False)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, divided=True)


def _loop(kit: Kit, divided: bool) -> Loop:
    physical, params = model = kit.mlp(64, 64, 10)
    loss, loader = kit.loss("cross-entropy"), kit.loader(*digits())
    optimiser = kit.optimiser(model, "sgd", lr=0.15)
    (output,) = physical.output_keys

    def run(w: Any) -> None:
        weights = dict(params)
        state = optimiser.init(physical.backend, weights)
        summed: dict[str, Any] = {}
        for _ in range(24):
            for number, (x, y) in enumerate(loader, start=1):
                data = {"input": x}
                _, gradient = loss(physical.evaluate(weights, data)[output], y)
                _, gradients = physical.evaluate(weights, data, output_gradients={output: gradient})
                for key, value in gradients.items():
                    summed[key] = summed.get(key, 0) + (value / PARTS if divided else value)
                if number % PARTS == 0:
                    weights, state = optimiser.update_params(weights, summed, state)
                    summed = {}

    return Loop((physical, params), [optimiser], run)
