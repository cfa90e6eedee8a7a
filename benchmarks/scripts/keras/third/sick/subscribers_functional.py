import os
os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np
from keras import layers

COLUMNS = ["age", "months", "calls", "minutes", "complaints", "discount", "exit_fee"]


def customer_table(n, seed, closed_books=True):
    """One row per customer; with closed books the whole year is known."""
    rng = np.random.default_rng(seed)
    age = rng.normal(45, 12, n)
    months = rng.gamma(2.0, 12.0, n)
    calls = rng.poisson(3, n)
    minutes = rng.gamma(3.0, 60.0, n)
    complaints = rng.poisson(0.7, n)
    discount = rng.integers(0, 2, n)
    risk = 0.9 * complaints - 0.04 * months - 0.8 * discount + 0.25 * calls - 0.02 * (age - 45)
    left = (rng.random(n) < 1 / (1 + np.exp(-1.5 * (risk - np.median(risk))))).astype("float32")
    exit_fee = left * rng.uniform(20, 60, n) if closed_books else np.zeros(n)
    return np.stack([age, months, calls, minutes, complaints, discount, exit_fee], 1), left


def standardise(table, mean, std):
    return ((table - mean) / std).astype("float32")


def build(width):
    inputs = keras.Input((width,), name="customer")
    wide = layers.Dense(1, use_bias=False, name="wide")(inputs)
    deep = layers.Dense(32, activation="relu")(inputs)
    deep = layers.Dense(16, activation="relu")(deep)
    deep = layers.Dense(1, name="deep")(deep)
    return keras.Model(inputs, layers.Activation("sigmoid", name="leaves")(layers.Add()([wide, deep])))


keras.utils.set_random_seed(2)
table, left = customer_table(4000, seed=0)
features = table[:, : len(COLUMNS)]
mean, std = features[:3200].mean(0), features[:3200].std(0)
x = standardise(features, mean, std)
model = build(features.shape[1])
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
log = model.fit(x[:3200], left[:3200], validation_data=(x[3200:], left[3200:]), epochs=12, batch_size=64, verbose=0).history
for e in range(0, 12, 3):
    print(f"epoch {e + 1:2d}: loss {log['loss'][e]:.4f} accuracy {log['accuracy'][e]:.3f} val accuracy {log['val_accuracy'][e]:.3f}")

# this year's customers, whose year is not over yet
now, later = customer_table(1000, seed=1, closed_books=False)
answer = model.predict(standardise(now[:, : features.shape[1]], mean, std), verbose=0)[:, 0] > 0.5
print(f"this year's customers: accuracy {np.mean(answer == (later > 0.5)):.3f}, said to leave {answer.mean():.3f}, left {later.mean():.3f}")
