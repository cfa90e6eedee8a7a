"""A training of Keras by `fit`; KERAS_BACKEND says on what, torch by default."""

import os
import warnings
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np

from benchmarks.watching.training import Training, Turns


def mlp() -> Training:
    keras.utils.set_random_seed(0)
    dense = [keras.layers.Dense(256, activation="relu") for _ in range(3)]
    model = keras.Sequential([keras.Input((128,)), *dense, keras.layers.Dense(10)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(64, 128)).astype("float32"), rng.integers(0, 10, 64)

    def fit(turns: Turns, *callbacks: keras.callbacks.Callback) -> None:
        warnings.filterwarnings("ignore", "Your input ran out of data")  # the turns' end is meant
        model.fit(((x, y) for _ in turns), verbose=0, shuffle=False, callbacks=list(callbacks))

    def watched(turns: Turns, **options: Any) -> Any:
        import sleuth

        watch = sleuth.keras.Watch(**options)
        fit(turns, watch)
        return watch.report()

    return Training(fit, watched)


TRAININGS = {"MLP 128-256-256-256-10, batch 64": mlp}
