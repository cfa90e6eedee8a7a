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
    x, y = diabetes()
    model = kit.mlp(10, 64, 64, 1)
    loss, loader = kit.loss("mse"), kit.loader(x[:SPLIT], y[:SPLIT])
    optimiser = kit.optimiser(model, "adam", lr=3e-3)

    def run(w: Any) -> None:
        for _ in range(epochs):
            for inputs, target in loader:
                _, gradient = loss(model.forward(inputs), target)
                optimiser.step(model.backward(gradient))
            w.log(val_loss=loss(model.forward(x[SPLIT:]), y[SPLIT:])[0])

    return Loop(model, [optimiser], run)
