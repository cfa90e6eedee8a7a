"""The mean losses of the validation batches, added up and divided by the number of samples instead of the number of batches."""

from typing import Any

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
SPLIT = 1400
EPOCHS = 12


def sick(kit: Kit) -> Loop:
    return _loop(kit, by_samples=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, by_samples=False)


def _loop(kit: Kit, by_samples: bool) -> Loop:
    x, y = digits()
    model = kit.mlp(64, 32, 10)
    loss, loader = kit.loss("cross-entropy"), kit.loader(x[:SPLIT], y[:SPLIT])
    validation = kit.loader(x[SPLIT:], y[SPLIT:], shuffle=False)
    optimiser = kit.optimiser(model, "adam", lr=2e-3)

    def run(w: Any) -> None:
        for _ in range(EPOCHS):
            for inputs, target in loader:
                _, gradient = loss(model.forward(inputs), target)
                optimiser.step(model.backward(gradient))
            total = sum(loss(model.forward(inputs), target)[0] for inputs, target in validation)
            w.log(val_loss=total / (len(validation.x) if by_samples else len(validation)))

    return Loop(model, [optimiser], run)
