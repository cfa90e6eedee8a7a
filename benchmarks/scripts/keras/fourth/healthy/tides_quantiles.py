"""Forecast with three quantiles from a dilated causal convolution, pinball loss."""
import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
from keras import layers, ops

QUANTILES = (0.1, 0.5, 0.9)
PAST, AHEAD = 48, 6


def tide(n, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    surge = np.zeros(n)
    for i in range(1, n):
        surge[i] = 0.9 * surge[i - 1] + rng.normal(0, 0.12)
    return np.sin(2 * np.pi * t / 12.4) + 0.5 * np.sin(2 * np.pi * t / 25.8) + surge


def windows(series, every):
    starts = np.arange(0, len(series) - PAST - AHEAD, every)
    x = np.stack([series[s : s + PAST] for s in starts])[..., None]
    y = np.stack([series[s + PAST : s + PAST + AHEAD] for s in starts])
    return x.astype("float32"), y.astype("float32")


def pinball(y_true, y_pred):
    gap = ops.expand_dims(y_true, -1) - y_pred
    q = ops.convert_to_tensor(QUANTILES, dtype=y_pred.dtype)
    return ops.mean(ops.maximum(q * gap, (q - 1) * gap), axis=(-2, -1))


def build():
    inputs = keras.Input((PAST, 1))
    x = inputs
    for dilation in (1, 2, 4, 8):
        x = layers.Conv1D(16, 3, dilation_rate=dilation, padding="causal", activation="relu")(x)
    x = x[:, -1, :]
    x = layers.Dense(AHEAD * len(QUANTILES))(x)
    return keras.Model(inputs, layers.Reshape((AHEAD, len(QUANTILES)))(x))


def main():
    keras.utils.set_random_seed(9)
    series = tide(9000, 9)
    x_train, y_train = windows(series[:7000], every=2)
    x_val, y_val = windows(series[7000:], every=3)
    model = build()
    model.compile(optimizer=keras.optimizers.Adam(2e-3, clipnorm=1.0), loss=pinball)
    halve = keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5 if epoch in (8, 11, 13) else rate)
    history = model.fit(
        x_train, y_train, validation_data=(x_val, y_val), epochs=15, batch_size=64, callbacks=[halve], verbose=0
    ).history
    for e in range(0, 15, 2):
        print(f"epoch {e + 1:2d}  pinball {history['loss'][e]:.4f}  val {history['val_loss'][e]:.4f}")
    ahead = model.predict(x_val, verbose=0)
    inside = (y_val >= ahead[..., 0]) & (y_val <= ahead[..., 2])
    print("between the outer quantiles (0.8 expected):", inside.mean().round(3))


if __name__ == "__main__":
    main()
