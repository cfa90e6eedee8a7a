import os
os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np
from keras import ops


class Affine(keras.layers.Layer):
    """y = act(x W + b)"""

    def __init__(self, units, act=None, **kw):
        super().__init__(**kw)
        self.units = units
        self.act = keras.activations.get(act)

    def build(self, input_shape):
        self.w = self.add_weight(
            name="w",
            shape=(input_shape[-1], self.units),
            initializer=keras.initializers.RandomUniform(0.0, 1.0, seed=3),
        )
        self.b = self.add_weight(name="b", shape=(self.units,), initializer="zeros")

    def call(self, x):
        return self.act(ops.matmul(x, self.w) + self.b)


def spirals(n, seed):
    rng = np.random.default_rng(seed)
    arm = rng.integers(0, 3, n)
    r = rng.uniform(0.1, 1, n)
    angle = 3.5 * r + arm * 2 * np.pi / 3 + rng.normal(0, 0.12, n)
    return np.stack([r * np.cos(angle), r * np.sin(angle)], 1).astype("float32") * 1.7, arm


def build():
    return keras.Sequential([keras.Input((2,)), Affine(64, "relu"), Affine(64, "relu"), Affine(64, "relu"), Affine(3, "softmax")])


if __name__ == "__main__":
    keras.utils.set_random_seed(0)
    x, y = spirals(2000, 0)
    xt, yt = spirals(500, 1)
    net = build()
    net.compile(optimizer=keras.optimizers.Adam(2e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    log = net.fit(x, y, batch_size=64, epochs=25, verbose=0)
    for e in range(4, 25, 5):
        print(f"{e + 1}: loss {log.history['loss'][e]:.4f} accuracy {log.history['accuracy'][e]:.3f}")
    print("test", net.evaluate(xt, yt, verbose=0))
