"""The weights are kept for a picture: of every step since the beginning, or of the latest only."""

import ctypes
import sys
from typing import Any

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, keeps_all=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, keeps_all=False)


def _loop(kit: Kit, keeps_all: bool) -> Loop:
    physical, params = model = kit.mlp(64, 2048, 10)
    loss, loader = kit.loss("cross-entropy"), kit.loader(*digits(), batch_size=128)
    optimiser = kit.optimiser(model, lr=1e-3)
    (output,) = physical.output_keys

    def run(w: Any) -> None:
        # What earlier work of this process freed is given back: otherwise the first hundred megabytes come from there.
        if sys.platform == "linux":
            ctypes.CDLL(None).malloc_trim(0)
        weights = dict(params)
        state = optimiser.init(physical.backend, weights)
        kept: list[Any] = []
        for _ in range(60):
            for x, y in loader:
                data = {"input": x}
                _, gradient = loss(physical.evaluate(weights, data)[output], y)
                _, gradients = physical.evaluate(weights, data, output_gradients={output: gradient})
                weights, state = optimiser.update_params(weights, gradients, state)
                if not keeps_all:
                    kept.clear()
                kept.append({key: value.copy() for key, value in weights.items()})

    return Loop((physical, params), [optimiser], run)
