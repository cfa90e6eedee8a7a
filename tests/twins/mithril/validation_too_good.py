"""The mean losses of the validation batches, added up and divided by the number of samples instead of the number of batches."""

from typing import Any

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
SPLIT = 1400


def sick(kit: Kit) -> Loop:
    return _loop(kit, by_samples=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, by_samples=False)


def _loop(kit: Kit, by_samples: bool) -> Loop:
    x_all, y_all = digits()
    validation = kit.loader(x_all[SPLIT:], y_all[SPLIT:], shuffle=False)
    physical, params = model = kit.mlp(64, 32, 10)
    loss, loader = kit.loss("cross-entropy"), kit.loader(x_all[:SPLIT], y_all[:SPLIT])
    optimiser = kit.optimiser(model, "adam", lr=2e-3)
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
            values = [loss(physical.evaluate(weights, {"input": x})[output], y)[0] for x, y in validation]
            w.log(val_loss=float(sum(values)) / (len(validation.x) if by_samples else len(validation)))

    return Loop((physical, params), [optimiser], run)
