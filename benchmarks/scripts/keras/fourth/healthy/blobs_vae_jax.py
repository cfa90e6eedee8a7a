import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np
from keras import layers, ops
from sklearn.datasets import load_digits


class Sample(layers.Layer):
    """Draws from the code's normal distribution and adds its divergence to the loss."""

    def __init__(self, weight, **kwargs):
        super().__init__(**kwargs)
        self.weight = weight
        self.seed = keras.random.SeedGenerator(3)

    def call(self, inputs, training=None):
        mean, log_var = inputs
        kl = -0.5 * ops.sum(1 + log_var - ops.square(mean) - ops.exp(log_var), axis=-1)
        self.add_loss(self.weight * ops.mean(kl))
        if not training:
            return mean
        return mean + ops.exp(0.5 * log_var) * keras.random.normal(ops.shape(mean), seed=self.seed)


def build(code=6):
    inputs = keras.Input((64,))
    h = layers.Dense(96, activation="gelu")(inputs)
    h = layers.Dense(48, activation="gelu")(h)
    mean, log_var = layers.Dense(code)(h), layers.Dense(code, kernel_initializer="zeros")(h)
    z = Sample(weight=1.0)([mean, log_var])
    h = layers.Dense(48, activation="gelu")(z)
    h = layers.Dense(96, activation="gelu")(h)
    return keras.Model(inputs, layers.Dense(64, activation="sigmoid")(h))


def pixel_loss(y_true, y_pred):
    """Bernoulli log-likelihood, summed over the 64 pixels."""
    y_pred = ops.clip(y_pred, 1e-6, 1 - 1e-6)
    return -ops.sum(y_true * ops.log(y_pred) + (1 - y_true) * ops.log(1 - y_pred), axis=-1)


keras.utils.set_random_seed(3)
x = (load_digits().data / 16.0).astype("float32")
x = x[np.random.default_rng(3).permutation(len(x))]
train, val = x[:1400], x[1400:]
model = build()
steps = 40 * (1400 // 50)
rate = keras.optimizers.schedules.CosineDecay(0.0, steps, warmup_target=2e-3, warmup_steps=100)
model.compile(optimizer=keras.optimizers.Adam(rate), loss=pixel_loss)
h = model.fit(train, train, validation_data=(val, val), epochs=40, batch_size=50, verbose=0).history
for e in range(4, 40, 5):
    print(f"epoch {e + 1:2d}  -elbo {h['loss'][e]:.3f}  held out (at the mean) {h['val_loss'][e]:.3f}")
