"""What the first layer says is kept for a picture: of every step since the beginning, or of the latest only."""

import ctypes
import sys
from typing import Any

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
PASSES = 60
WIDTH = 1024


def sick(kit: Kit) -> Loop:
    return _loop(kit, keeps_all=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, keeps_all=False)


def _loop(kit: Kit, keeps_all: bool) -> Loop:
    model, criterion = kit.mlp(64, WIDTH, 10), kit.loss("cross-entropy")
    optimiser, loader = kit.optimiser(model, lr=1e-3), kit.loader(*digits(), batch_size=256)

    def run(w: Any) -> None:
        # What earlier work of this process freed is given back: otherwise the first hundred megabytes come from there.
        if sys.platform == "linux":
            ctypes.CDLL(None).malloc_trim(0)
        features: list[Any] = []
        for _ in range(PASSES):
            for x, y in loader:
                _, gradient = criterion(model.forward(x), y)
                optimiser.step(model.backward(gradient))
                if not keeps_all:
                    features.clear()
                features.append(model.layers[0].forward(x))

    return Loop(model, [optimiser], run)
