"""Digits with dropout and batch-norm: the validation after every epoch switches dropout and batch-norm off, or forgets it."""

from typing import Any

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, evaluates=False)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, evaluates=True)


def set_training(model: Any, on: bool) -> None:
    for layer in (model, *model.layers):
        layer.training = on


def _loop(kit: Kit, evaluates: bool) -> Loop:
    x, y = digits()
    loader, held_out = kit.loader(x[:1500], y[:1500]), kit.loader(x[1500:], y[1500:], shuffle=False)
    model = kit.sequential(
        kit.linear(64, 64),
        kit.layer("batchnorm", 64),
        kit.activation("relu"),
        kit.layer("dropout", 0.2),
        kit.linear(64, 10),
    )
    optimiser, criterion = kit.optimiser(model, "adam", lr=3e-3), kit.loss("cross-entropy")

    def run(w: object) -> None:
        for _ in range(4):
            set_training(model, True)
            for a, b in loader:
                _, gradient = criterion(model.forward(a), b)
                optimiser.step(model.backward(gradient))
            if evaluates:
                set_training(model, False)
            for a, b in held_out:
                criterion(model.forward(a), b)

    return Loop(model, [optimiser], run)
