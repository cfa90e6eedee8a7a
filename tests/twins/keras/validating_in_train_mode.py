"""Digits with dropout and batch normalisation: a test_step of one's own calls the model with training=False, or with True."""

from typing import Any

import keras
from keras import layers

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


class Model(keras.Sequential):
    as_in_training = False

    def test_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        output = self(x, training=self.as_in_training)
        self._loss_tracker.update_state(self.compute_loss(x, y, output))
        return {"loss": self._loss_tracker.result()}


def sick(kit: Kit) -> Loop:
    return _loop(as_in_training=True)


def healthy(kit: Kit) -> Loop:
    return _loop(as_in_training=False)


def _loop(as_in_training: bool) -> Loop:
    x, y = digits()
    model = Model(
        [
            keras.Input((64,)),
            layers.Dense(64),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.Dropout(0.2),
            layers.Dense(10),
        ]
    )
    model.as_in_training = as_in_training
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(3e-3), loss=loss)

    def run(w: Any) -> None:
        model.fit(x[:1500], y[:1500], epochs=4, validation_data=(x[1500:], y[1500:]), verbose=0)

    return Loop(model, [model.optimizer], run)
