import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np
from keras import layers


def make_houses(n, seed):
    rng = np.random.default_rng(seed)
    area = rng.normal(120, 35, n).clip(35, 300)
    rooms = np.round(area / 28 + rng.normal(0, 0.7, n)).clip(1, 9)
    age = rng.gamma(2.0, 18.0, n)
    distance = rng.gamma(2.0, 4.0, n)
    garden = rng.random(n) < 0.4
    price = 2900 * area * np.exp(-distance / 30) * (1 - 0.003 * age) + 9000 * rooms + 30000 * garden
    price *= np.exp(rng.normal(0, 0.07, n))
    return np.stack([area, rooms, age, distance, garden, price], axis=1).astype("float32")


keras.utils.set_random_seed(77)
table = make_houses(4000, 77)
columns = ["area", "rooms", "age", "distance", "garden"]
x_train, y_train = table[:3200, :-1], table[:3200, -1]
x_val, y_val = table[3200:, :-1], table[3200:, -1]


def build_model(examples):
    """The inputs are brought to mean 0 and spread 1 by the first layer."""
    normalise = layers.Normalization()
    normalise.adapt(examples)
    inputs = keras.Input((len(columns),))
    h = normalise(inputs)
    h = layers.Dense(48, activation="relu")(h)
    h = layers.Dense(48, activation="relu")(h)
    return keras.Model(inputs, layers.Dense(1)(h), name="houses")


model = build_model(x_train)
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse")
history = model.fit(
    x_train,
    y_train,
    validation_data=(x_val, y_val),
    epochs=30,
    batch_size=64,
    verbose=0,
).history
for e in range(4, 30, 5):
    print(f"epoch {e + 1:2d}  loss {history['loss'][e]:.4g}  val_loss {history['val_loss'][e]:.4g}")

guess = model.predict(x_val[:5], verbose=0)[:, 0]
print("five houses, as said and as sold:")
for said, sold in zip(guess, y_val[:5]):
    print(f"  {said:12.4g} {sold:12.4g}")

spread = y_val.var()
print(f"share of the variance explained: {1 - history['val_loss'][-1] / spread:.3f}")
