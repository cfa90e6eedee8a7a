"""A wide model and few patients: after some epochs it learns them by heart, unless somebody stops it."""

from typing import Any

from sleuth.testing import Kit, Loop
from tests.material import diabetes

SOURCE = "watch"
SPLIT = 300


def sick(kit: Kit) -> Loop:
    return _loop(kit, epochs=60)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, epochs=8)


def _loop(kit: Kit, epochs: int) -> Loop:
    x_all, y_all = diabetes()
    held, right = x_all[SPLIT:], y_all[SPLIT:]
    physical, params = model = kit.mlp(10, 64, 64, 1)
    loss, loader = kit.loss("mse"), kit.loader(x_all[:SPLIT], y_all[:SPLIT])
    optimiser = kit.optimiser(model, "adam", lr=3e-3)
    (output,) = physical.output_keys

    def run(w: Any) -> None:
        weights = dict(params)
        state = optimiser.init(physical.backend, weights)
        for _ in range(epochs):
            for x, y in loader:
                data = {"input": x}
                _, gradient = loss(physical.evaluate(weights, data)[output], y)
                _, gradients = physical.evaluate(weights, data, output_gradients={output: gradient})
                weights, state = optimiser.update_params(weights, gradients, state)
            w.log(val_loss=float(loss(physical.evaluate(weights, {"input": held})[output], right)[0]))

    return Loop((physical, params), [optimiser], run)
