"""Weight decay so strong that it pulls the weights back faster than the digits can teach them."""

from typing import Any

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
SPLIT = 1400
EPOCHS = 30


def sick(kit: Kit) -> Loop:
    return _loop(kit, decay=0.15)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, decay=0.0)


def _loop(kit: Kit, decay: float) -> Loop:
    x, y = digits()
    model = kit.mlp(64, 32, 10)
    loss, loader = kit.loss("cross-entropy"), kit.loader(x[:SPLIT], y[:SPLIT])
    optimiser = kit.optimiser(model, "sgd", lr=0.1, weight_decay=decay)

    def run(w: Any) -> None:
        for _ in range(EPOCHS):
            for inputs, target in loader:
                _, gradient = loss(model.forward(inputs), target)
                optimiser.step(model.backward(gradient))
            w.log(val_loss=loss(model.forward(x[SPLIT:]), y[SPLIT:])[0])

    return Loop(model, [optimiser], run)
