import os
os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
from keras import layers


def draw(n, seed):
    """Colour pictures, 3 x 20 x 20: a cross, a ring, a bar or a corner somewhere, in any colour."""
    rng = np.random.default_rng(seed)
    pictures = rng.normal(0, 0.4, (n, 3, 20, 20))
    kinds = rng.integers(0, 4, n)
    for picture, kind in zip(pictures, kinds):
        stamp = np.zeros((5, 5))
        if kind == 0:
            stamp[2, :] = stamp[:, 2] = 1
        elif kind == 1:
            stamp[0, :] = stamp[-1, :] = stamp[:, 0] = stamp[:, -1] = 1
        elif kind == 2:
            stamp[1:4, :] = 1
        else:
            stamp[-1, :] = stamp[:, 0] = 1
        r, c = rng.integers(0, 15, 2)
        picture[:, r : r + 5, c : c + 5] += stamp * rng.uniform(0.6, 1.4, (3, 1, 1))
    return pictures.astype("float32"), kinds


def make_model(shape):
    return keras.Sequential(
        [
            keras.Input(shape),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.Conv2D(24, 3, padding="same", activation="relu"),
            layers.GlobalMaxPooling2D(),
            layers.Dense(4),
        ]
    )


keras.utils.set_random_seed(1)
x_train, y_train = draw(400, 0)
x_test, y_test = draw(300, 1)
model = make_model(x_train.shape[1:])
model.compile(
    optimizer=keras.optimizers.Adam(3e-3),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
for epoch in range(15):
    log = model.fit(x_train, y_train, batch_size=40, epochs=1, verbose=0).history
    loss, accuracy = model.evaluate(x_test, y_test, verbose=0)
    print(f"epoch {epoch + 1}: loss {log['loss'][0]:.3f}  test loss {loss:.3f}  test accuracy {accuracy:.3f}")
