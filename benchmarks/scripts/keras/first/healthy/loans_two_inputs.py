import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(24)
rng = np.random.default_rng(24)

# Made-up loan applications; roughly one in five defaults.
n = 5000
income = rng.lognormal(0, 0.4, n)
debt = rng.gamma(2, 0.5, n)
years = rng.exponential(1.0, n)
region = rng.integers(0, 8, n)
region_effect = rng.normal(0, 0.6, 8)
logit = -2.6 - 1.8 * np.log(income) + 1.3 * debt - 0.7 * years + region_effect[region]
default = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype("float32")
print(f"defaults: {default.mean():.3f}")
numbers = np.column_stack([np.log(income), debt, years])
numbers = ((numbers - numbers[:4000].mean(0)) / numbers[:4000].std(0)).astype("float32")

numeric_in = keras.Input((3,), name="numbers")
region_in = keras.Input((1,), dtype="int32", name="region")
embedded = layers.Flatten()(layers.Embedding(8, 4)(region_in))
x = layers.Concatenate()([numeric_in, embedded])
x = layers.Dense(24, activation="relu")(x)
x = layers.Dense(12, activation="relu")(x)
out = layers.Dense(1, activation="sigmoid")(x)
model = keras.Model([numeric_in, region_in], out)
model.compile(
    optimizer=keras.optimizers.Adam(2e-3, clipnorm=1.0),
    loss="binary_crossentropy",
    metrics=[keras.metrics.AUC(name="auc")],
)
model.fit(
    {"numbers": numbers[:4000], "region": region[:4000, None]},
    default[:4000, None],
    validation_data=({"numbers": numbers[4000:], "region": region[4000:, None]}, default[4000:, None]),
    class_weight={0: 1.0, 1: 2.0},
    batch_size=80,
    epochs=8,
    verbose=2,
)
