"""A penalty on large weights with the wrong sign, and with the right one."""

from typing import Any

import keras
from keras import layers

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(penalty=-1e-2)


def healthy(kit: Kit) -> Loop:
    return _loop(penalty=1e-3)


def _loop(penalty: float) -> Loop:
    x, y = digits()

    def large(weights: Any) -> Any:
        return penalty * keras.ops.sum(weights**2)

    model = keras.Sequential(
        [
            keras.Input((64,)),
            layers.Dense(32, activation="tanh", kernel_regularizer=large),
            layers.Dense(10, kernel_regularizer=large),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.SGD(0.5), loss=loss)

    def run(w: Any) -> None:
        model.fit(x, y, epochs=8, verbose=0)

    return Loop(model, [model.optimizer], run, {"every": 10})
