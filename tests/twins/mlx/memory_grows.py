"""What the first layer says is kept for a picture: of every step since the beginning, or of the latest only."""

import ctypes
import sys
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
PASSES = 40
WIDTH = 512


def sick(kit: Kit) -> Loop:
    return _loop(kit, keeps_all=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, keeps_all=False)


def _loop(kit: Kit, keeps_all: bool) -> Loop:
    model, loader = kit.mlp(64, WIDTH, 10), kit.loader(*digits(), batch_size=256)
    optimiser = kit.optimiser(model, lr=1e-3)

    def loss_fn(x: mx.array, y: mx.array) -> mx.array:
        return nn.losses.cross_entropy(model(x), y, reduction="mean")

    def run(w: Any) -> None:
        # What earlier work of this process freed is given back: otherwise the first hundred megabytes come from there.
        mx.clear_cache()
        if sys.platform == "linux":
            ctypes.CDLL(None).malloc_trim(0)
        loss_and_grad = nn.value_and_grad(model, loss_fn)
        features: list[mx.array] = []
        for _ in range(PASSES):
            for x, y in loader:
                loss, gradients = loss_and_grad(x, y)
                optimiser.update(model, gradients)
                if not keeps_all:
                    features.clear()
                features.append(model.layers[0](x))
                mx.eval(loss, model.parameters(), optimiser.state, features[-1])

    return Loop(model, [optimiser], run)
