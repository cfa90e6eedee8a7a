"""A model that is trained on from a file of weights: saved from a wider one, or from one like it."""

import os
import tempfile
from pathlib import Path
from typing import Any

import keras

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
EPOCHS = 4


def sick(kit: Kit) -> Loop:
    return _loop(wide=True)


def healthy(kit: Kit) -> Loop:
    return _loop(wide=False)


def _model(width: int) -> keras.Model:
    hidden = keras.layers.Dense(width, activation="relu")
    made = keras.Sequential([keras.Input((64,)), hidden, keras.layers.Dense(10)])
    made.compile(keras.optimizers.Adam(3e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return made


def _loop(wide: bool) -> Loop:
    keras.utils.set_random_seed(0)
    before, model = _model(48 if wide else 32), _model(32)
    x, y = digits()
    # It must still lie there when the exception has left the loop.
    path = str(Path(tempfile.gettempdir()) / f"sleuth-{os.getpid()}-before.weights.h5")
    before.save_weights(path)

    def run(w: Any) -> None:
        model.load_weights(path)
        model.fit(x, y, batch_size=32, epochs=EPOCHS, verbose=0)

    return Loop(model, [model.optimizer], run, fails=wide)
