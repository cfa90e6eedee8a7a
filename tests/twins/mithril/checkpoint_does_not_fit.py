"""Weights that are taken over from a file: saved under other names, or under these."""

import io
from typing import Any

import numpy as np

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, renamed=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, renamed=False)


def _loop(kit: Kit, renamed: bool) -> Loop:
    saved_as = "net." if renamed else ""
    file = io.BytesIO()
    np.savez(file, **{saved_as + key: array for key, array in kit.mlp(64, 32, 10)[1].items()})
    physical, params = model = kit.mlp(64, 32, 10)
    loss, loader = kit.loss("cross-entropy"), kit.loader(*digits())
    optimiser = kit.optimiser(model, "adam", lr=3e-3)
    (output,) = physical.output_keys

    def run(w: Any) -> None:
        file.seek(0)
        saved = np.load(file)
        weights = {key: saved[key] for key in params}
        state = optimiser.init(physical.backend, weights)
        for _ in range(4):
            for x, y in loader:
                data = {"input": x}
                _, gradient = loss(physical.evaluate(weights, data)[output], y)
                _, gradients = physical.evaluate(weights, data, output_gradients={output: gradient})
                weights, state = optimiser.update_params(weights, gradients, state)

    return Loop((physical, params), [optimiser], run, fails=renamed)
