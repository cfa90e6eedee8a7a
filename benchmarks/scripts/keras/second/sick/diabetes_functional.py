import os
os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_diabetes
from sklearn.metrics import r2_score
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(3)

raw = load_diabetes(scaled=False)
rng = np.random.default_rng(3)
order = rng.permutation(len(raw.target))
train, test = order[:350], order[350:]

scaler = StandardScaler().fit(raw.data[train])
x_train = scaler.transform(raw.data[train]).astype("float32")
x_test = scaler.transform(raw.data[test]).astype("float32")
y_train = raw.target[train].astype("float32")
y_test = raw.target[test].astype("float32")

inputs = keras.Input(shape=(10,), name="patient")
h = layers.Dense(16, activation="tanh")(inputs)
h = layers.Dense(8, activation="tanh")(h)
outputs = layers.Dense(1, name="progression")(h)
model = keras.Model(inputs, outputs)

model.compile(
    optimizer=keras.optimizers.Adam(learning_rate=2e-3),
    loss="mse",
    metrics=["mae"],
)
hist = model.fit(x_train, y_train, epochs=40, batch_size=32, verbose=0)

for epoch in range(4, 40, 5):
    print(f"epoch {epoch + 1:3d}: mse {hist.history['loss'][epoch]:.3f}  mae {hist.history['mae'][epoch]:.3f}")

pred = model.predict(x_test, verbose=0)[:, 0]
print(f"first predictions {np.round(pred[:5], 2)} for {np.round(y_test[:5], 2)}")
print(f"R2 on the test patients: {r2_score(y_test, pred):.3f}")
