"""Digits in a loop of one's own on the torch backend: the validation after every epoch runs under no_grad, or with autograd."""

from typing import Any

import keras
import torch
from keras import layers

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, gradients=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, gradients=False)


def _loop(kit: Kit, gradients: bool) -> Loop:
    x, y = digits()
    loader, held_out = kit.loader(x[:1500], y[:1500]), kit.loader(x[1500:], y[1500:], shuffle=False)
    model = keras.Sequential([keras.Input((64,)), layers.Dense(32, activation="relu"), layers.Dense(10)])
    optimizer = keras.optimizers.Adam(3e-3)
    criterion = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def run(w: Any) -> None:
        for _ in range(4):
            for a, b in loader:
                model.zero_grad()
                criterion(b, model(a, training=True)).backward()
                weights = list(model.trainable_weights)
                with torch.no_grad():
                    optimizer.apply([w.value.grad for w in weights], weights)
            with torch.set_grad_enabled(gradients):
                for a, b in held_out:
                    criterion(b, model(a, training=False))

    return Loop(model, [optimizer], run)
