import os
os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(12)
rng = np.random.default_rng(12)

# monthly demand of many shops: trend, season, noise
months = np.arange(36)
level = rng.normal(0, 0.3, (1200, 1))
season = rng.uniform(0.5, 1.5, (1200, 1)) * np.sin(2 * np.pi * (months + rng.integers(0, 12, (1200, 1))) / 12)
series = (level + season + rng.normal(0, 0.1, (1200, 36))).astype("float32")
x, y = series[:, 10:34, None], series[:, 35]
x_train, y_train, x_test, y_test = x[:1000], y[:1000], x[1000:], y[1000:]

model = keras.Sequential(
    [
        keras.Input((24, 1)),
        layers.Conv1D(16, 5, activation="relu"),
        layers.GRU(24),
        layers.Dense(16, activation="relu"),
        layers.Dense(1),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(learning_rate=0.3),
    loss="mse",
)
history = model.fit(x_train, y_train, validation_data=(x_test, y_test), epochs=12, batch_size=50, verbose=0)

for epoch, (loss, val) in enumerate(zip(history.history["loss"], history.history["val_loss"])):
    print(f"epoch {epoch + 1:2d}  mse {loss:.4f}  test mse {val:.4f}")
print("variance of the target", y_test.var())
