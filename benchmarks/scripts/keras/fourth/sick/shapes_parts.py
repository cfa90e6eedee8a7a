import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
from keras import layers


def draw_shapes(n, seed, size=14):
    """Discs, rings, crosses and bars on a noisy ground."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 4, n)
    yy, xx = np.mgrid[:size, :size]
    pictures = rng.normal(0, 0.35, (n, size, size))
    for picture, kind in zip(pictures, kinds):
        cy, cx, r = rng.uniform(5, 9), rng.uniform(5, 9), rng.uniform(3, 4.5)
        far = np.hypot(yy - cy, xx - cx)
        if kind == 0:
            shape = far < r * 0.8
        elif kind == 1:
            shape = np.abs(far - r) < 0.9
        elif kind == 2:
            shape = ((np.abs(yy - cy) < 1) | (np.abs(xx - cx) < 1)) & (far < r)
        else:
            shape = (np.abs((yy - cy) + (xx - cx)) < 1.4) & (far < r)
        picture += shape
    return ((pictures - 0.12) / 0.5).astype("float32")[..., None], kinds


def make_backbone():
    return keras.Sequential(
        [
            keras.Input((14, 14, 1)),
            layers.Conv2D(8, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(24, 3, activation="relu"),
            layers.GlobalAveragePooling2D(),
        ],
        name="backbone",
    )


def make_classifier(backbone, classes):
    backbone.trainable = False
    inputs = keras.Input((14, 14, 1))
    h = backbone(inputs)
    h = layers.Dense(16, activation="relu")(h)
    return keras.Model(inputs, layers.Dense(classes)(h))


class Brief(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1:2d}:", ", ".join(f"{k} {v:.3f}" for k, v in logs.items()))


def main():
    keras.utils.set_random_seed(19)
    x_train, y_train = draw_shapes(2400, 19)
    x_val, y_val = draw_shapes(600, 20)
    model = make_classifier(make_backbone(), classes=4)
    model.compile(
        optimizer=keras.optimizers.Adam(4e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(x_train, y_train, validation_data=(x_val, y_val), epochs=15, batch_size=64, verbose=0, callbacks=[Brief()])


if __name__ == "__main__":
    main()
