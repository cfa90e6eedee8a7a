"""A network that is trained on from a file: saved by a version that named its weights otherwise, or by this one."""

import io
from typing import Any

import numpy as np

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
PASSES = 4


def sick(kit: Kit) -> Loop:
    return _loop(kit, prefix="net.")


def healthy(kit: Kit) -> Loop:
    return _loop(kit, prefix="")


def _loop(kit: Kit, prefix: str) -> Loop:
    file = io.BytesIO()
    np.savez(file, **{prefix + name: array for name, array in kit.mlp(64, 32, 10).parameters()})
    model, criterion = kit.mlp(64, 32, 10), kit.loss("cross-entropy")
    optimiser, loader = kit.optimiser(model, lr=3e-3), kit.loader(*digits())

    def run(w: Any) -> None:
        file.seek(0)
        saved = np.load(file)
        for name, array in model.parameters():
            array[...] = saved[name]
        for _ in range(PASSES):
            for x, y in loader:
                _, gradient = criterion(model.forward(x), y)
                optimiser.step(model.backward(gradient))

    return Loop(model, [optimiser], run, fails=bool(prefix))
