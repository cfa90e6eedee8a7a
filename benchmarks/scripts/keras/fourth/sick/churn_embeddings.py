import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np
from keras import layers

rng = np.random.default_rng(23)
keras.utils.set_random_seed(23)

# customers: tariff (one of 12), region (one of 30), and six figures of use
N = 5000
tariff = rng.integers(0, 12, N)
region = rng.integers(0, 30, N)
use = rng.normal(0, 1, (N, 6)).astype("float32")
pull = rng.normal(0, 1.6, 12)[tariff] + rng.normal(0, 1.0, 30)[region]
pull += 1.8 * use[:, 0] - 2.0 * use[:, 1] * use[:, 2] + 1.2 * np.abs(use[:, 3]) - 0.6
leaves = (rng.random(N) < 1 / (1 + np.exp(-1.6 * pull))).astype("float32")
train, val = slice(0, 4000), slice(4000, N)


class ChurnModel(keras.Model):
    def __init__(self, width=32):
        super().__init__()
        self.tariff = layers.Embedding(12, 4)
        self.region = layers.Embedding(30, 4)
        self.join = layers.Concatenate()
        self.hidden = layers.Dense(width, activation="relu")
        self.hidden2 = layers.Dense(width, activation="relu")
        self.drop = layers.Dropout(0.2)
        self.score = layers.Dense(1)

    def call(self, inputs, training=None):
        x = self.join([self.tariff(inputs["tariff"]), self.region(inputs["region"]), inputs["use"]])
        x = self.drop(self.hidden(x), training=training)
        x = self.drop(self.hidden2(x), training=training)
        return self.score(x)


def part(rows):
    return {"tariff": tariff[rows], "region": region[rows], "use": use[rows]}, leaves[rows, None]


model = ChurnModel()
model.compile(
    optimizer=keras.optimizers.Adam(2e-3),
    loss=keras.losses.BinaryCrossentropy(),
    metrics=[keras.metrics.AUC(name="auc", from_logits=True)],
)
x, y = part(train)
history = model.fit(x, y, validation_data=part(val), epochs=20, batch_size=80, verbose=0)
for e in range(0, 20, 3):
    row = {k: v[e] for k, v in history.history.items()}
    print(f"{e + 1:2d}  loss {row['loss']:.4f}  auc {row['auc']:.3f}  val_loss {row['val_loss']:.4f}  val_auc {row['val_auc']:.3f}")

chance = 1 / (1 + np.exp(-model.predict(part(val)[0], verbose=0)[:, 0]))
print("mean predicted chance to leave", chance.mean(), "true share", leaves[val].mean())
