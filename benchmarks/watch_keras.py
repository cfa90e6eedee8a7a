"""What watching `fit` costs in Keras: plain and watched trainings in turns, seconds a step, and their ratio.

KERAS_BACKEND=torch python benchmarks/watch_keras.py        (or jax)
"""

import os
import time
from statistics import median

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np

import sleuth

ROUNDS, STEPS, BATCH = 9, 150, 64


def model() -> keras.Model:
    keras.utils.set_random_seed(0)
    dense = [keras.layers.Dense(256, activation="relu") for _ in range(3)]
    made = keras.Sequential([keras.Input((128,)), *dense, keras.layers.Dense(10)])
    made.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return made


def seconds(made: keras.Model, x: np.ndarray, y: np.ndarray, *callbacks: keras.callbacks.Callback) -> float:
    began = time.perf_counter()
    made.fit(x, y, batch_size=BATCH, verbose=0, callbacks=list(callbacks))
    return (time.perf_counter() - began) / STEPS


def main() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(BATCH * STEPS, 128)).astype("float32"), rng.integers(0, 10, BATCH * STEPS)
    plain, watched = model(), model()
    watch = sleuth.keras.Watch(directory=None, quiet=True)
    for made, callbacks in ((plain, ()), (watched, (watch,))):
        seconds(made, x, y, *callbacks)  # builds and compiles
    pairs = [(seconds(plain, x, y), seconds(watched, x, y, watch)) for _ in range(ROUNDS)]
    ratio, step = median(b / a for a, b in pairs), median(a for a, _ in pairs)
    print(f"keras {keras.__version__} on {keras.backend.backend()}: {step * 1e3:.2f} ms a step, ratio {ratio:.3f}")


if __name__ == "__main__":
    main()
