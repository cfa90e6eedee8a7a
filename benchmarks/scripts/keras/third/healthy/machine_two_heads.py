"""State of a machine: its kind of fault (four classes, two of them rare) and its remaining hours, from one trunk."""
import os
os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np
from keras import layers


def machines(n, seed):
    rng = np.random.default_rng(seed)
    fault = rng.choice(4, n, p=[0.6, 0.28, 0.08, 0.04])
    wear = rng.gamma(2.0, 1.0, n)
    tone = rng.normal(0, 1, (n, 6))
    tone[np.arange(n), fault] += 3.0
    tone[:, 4] += wear * 0.8
    tone[:, 5] -= wear * 0.5
    hours = 800 * np.exp(-0.4 * wear - 0.3 * fault) * rng.lognormal(0, 0.1, n)
    return np.column_stack([tone, wear + rng.normal(0, 0.2, n)]).astype("float32"), fault, hours.astype("float32")


x, fault, hours = machines(4000, 0)
log_hours = np.log(hours)
log_hours = (log_hours - log_hours[:3200].mean()) / log_hours[:3200].std()
share = np.bincount(fault[:3200]) / 3200
weight = np.minimum(1 / (4 * share), 4.0)[fault].astype("float32")

keras.utils.set_random_seed(8)
norm = layers.Normalization()
norm.adapt(x[:3200])
inputs = keras.Input((7,))
h = norm(inputs)
h = layers.Dense(48, activation="relu")(h)
h = layers.Dropout(0.1)(h)
h = layers.Dense(32, activation="relu")(h)
kind = layers.Dense(4, name="fault")(h)
left = layers.Dense(1, name="hours")(h)
model = keras.Model(inputs, {"fault": kind, "hours": left})
model.compile(
    optimizer=keras.optimizers.AdamW(3e-3, weight_decay=1e-3),
    loss={"fault": keras.losses.SparseCategoricalCrossentropy(from_logits=True), "hours": "mse"},
    loss_weights={"fault": 1.0, "hours": 0.5},
    metrics={"fault": ["accuracy"]},
)
targets = {"fault": fault[:3200], "hours": log_hours[:3200]}
weights = {"fault": weight[:3200], "hours": np.ones(3200, "float32")}
log = model.fit(x[:3200], targets, sample_weight=weights, epochs=12, batch_size=64, verbose=0).history
for e in range(0, 12, 3):
    print(f"epoch {e + 1}: loss {log['loss'][e]:.4f} fault {log['fault_loss'][e]:.4f} hours {log['hours_loss'][e]:.4f}")

out = model.predict(x[3200:], verbose=0)
guess = out["fault"].argmax(1)
recall = [float(np.mean(guess[fault[3200:] == c] == c)) for c in range(4)]
r2 = 1 - np.mean((out["hours"][:, 0] - log_hours[3200:]) ** 2) / np.var(log_hours[3200:])
print("recall per fault", np.round(recall, 3), "R2 of log hours", round(float(r2), 3))
