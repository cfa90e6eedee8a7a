"""Weight decay so strong that it pulls the weights back faster than the digits can teach them."""

from typing import Any

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
SPLIT = 1400


def sick(kit: Kit) -> Loop:
    return _loop(kit, decay=0.15)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, decay=0.0)


def _loop(kit: Kit, decay: float) -> Loop:
    x_all, y_all = digits()
    held, right = x_all[SPLIT:], y_all[SPLIT:]
    physical, params = model = kit.mlp(64, 32, 10)
    loss, loader = kit.loss("cross-entropy"), kit.loader(x_all[:SPLIT], y_all[:SPLIT])
    optimiser = kit.optimiser(model, "sgd", lr=0.1, weight_decay=decay)
    (output,) = physical.output_keys

    def run(w: Any) -> None:
        weights = dict(params)
        state = optimiser.init(physical.backend, weights)
        for _ in range(30):
            for x, y in loader:
                data = {"input": x}
                _, gradient = loss(physical.evaluate(weights, data)[output], y)
                _, gradients = physical.evaluate(weights, data, output_gradients={output: gradient})
                weights, state = optimiser.update_params(weights, gradients, state)
            w.log(val_loss=float(loss(physical.evaluate(weights, {"input": held})[output], right)[0]))

    return Loop((physical, params), [optimiser], run)
