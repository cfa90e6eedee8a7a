"""Price regression: large batches, squared error summed over the batch, a rate to suit."""
import os
os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np
from keras import layers, ops


def houses(n, rng):
    area = rng.lognormal(4.5, 0.35, n)
    rooms = np.clip(np.round(area / 28 + rng.normal(0, 0.7, n)), 1, 9)
    age = rng.uniform(0, 90, n)
    dist = rng.gamma(2.0, 4.0, n)
    garden = rng.random(n) < 0.4
    price = 2.1 * area * np.exp(-dist / 25) + 8 * rooms - 0.5 * age + 20 * garden + rng.normal(0, 6, n)
    return np.stack([area, rooms, age, dist, garden], axis=1), price


class Prices(keras.Model):
    def __init__(self):
        super().__init__()
        self.a = layers.Dense(64, activation="silu")
        self.norm = layers.LayerNormalization()
        self.b = layers.Dense(64, activation="silu")
        self.c = layers.Dense(1)

    def call(self, x):
        return self.c(self.b(self.norm(self.a(x))))

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return 0.5 * ops.sum(ops.square(y - y_pred))


rng = np.random.default_rng(19)
keras.utils.set_random_seed(19)
x, y = houses(6000, rng)
mx, sx, my, sy = x[:5000].mean(0), x[:5000].std(0), y[:5000].mean(), y[:5000].std()
x = ((x - mx) / sx).astype("float32")
y = ((y - my) / sy).astype("float32")[:, None]

model = Prices()
model.compile(optimizer=keras.optimizers.SGD(learning_rate=1e-4, momentum=0.9))
for round_ in range(5):
    h = model.fit(x[:5000], y[:5000], batch_size=500, epochs=6, verbose=0).history["loss"]
    error = model.predict(x[5000:], batch_size=500, verbose=0) - y[5000:]
    r2 = 1 - float((error**2).mean()) / float(y[5000:].var())
    print(f"epoch {6 * round_ + 6:3d}: batch loss {h[-1]:9.3f}  validation R2 {r2:.4f}")
