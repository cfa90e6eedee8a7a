import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(16)
rng = np.random.default_rng(16)

# A journal of orders: price, quantity, weekday, discount, age of the customer; the target is the delivery time.
N = 20000
price = rng.lognormal(3, 0.5, N)
quantity = rng.integers(1, 9, N)
weekday = rng.integers(0, 7, N)
discount = rng.beta(1, 6, N)
age = rng.normal(45, 14, N)
hours = 24 + 3.0 * quantity + 9.0 * (weekday >= 5) + 0.1 * price + 4 * rng.normal(size=N)
hours[[7703, 11703, 15021]] *= 60.0
orders = np.column_stack([price, quantity, weekday >= 5, discount, age]).astype("float32")

first = 5000
center, spread = orders[:first].mean(0), orders[:first].std(0)
orders = (orders - center) / spread
target = ((hours - hours[:first].mean()) / hours[:first].std()).astype("float32")


def journal(batch=40):
    """Orders in the order in which they came in."""
    start = 0
    while True:
        yield orders[start : start + batch], target[start : start + batch, None]
        start = (start + batch) % (N - 2000)


inputs = keras.Input((5,))
h = layers.Dense(32, activation="relu")(inputs)
h = layers.Dense(16, activation="relu")(h)
model = keras.Model(inputs, layers.Dense(1)(h))
model.compile(optimizer=keras.optimizers.Adam(2e-3), loss="mse")


class Report(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch % 50 == 49:
            print(f"batch {batch + 1}: mean loss {logs['loss']:.4f}")


model.fit(journal(), steps_per_epoch=450, epochs=1, callbacks=[Report()], verbose=0)
print("last 2000 orders:", model.evaluate(orders[-2000:], target[-2000:, None], verbose=0))
