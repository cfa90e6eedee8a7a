"""Digits and Adam: in one of the loops nobody wrote optimiser.update_params(…)."""

from typing import Any

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, updates=False)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, updates=True)


def _loop(kit: Kit, updates: bool) -> Loop:
    physical, params = model = kit.mlp(64, 32, 10)
    loss, loader = kit.loss("cross-entropy"), kit.loader(*digits())
    optimiser = kit.optimiser(model, "adam", lr=3e-3)
    (output,) = physical.output_keys

    def run(w: Any) -> None:
        weights = dict(params)
        state = optimiser.init(physical.backend, weights)
        for _ in range(4):
            for x, y in loader:
                data = {"input": x}
                _, gradient = loss(physical.evaluate(weights, data)[output], y)
                _, gradients = physical.evaluate(weights, data, output_gradients={output: gradient})
                if updates:
                    weights, state = optimiser.update_params(weights, gradients, state)

    return Loop((physical, params), [optimiser], run)
