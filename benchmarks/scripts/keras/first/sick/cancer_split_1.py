import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
from keras import layers, regularizers
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

SEED = 3
keras.utils.set_random_seed(SEED)
rng = np.random.default_rng(SEED)

data = load_breast_cancer()
X = StandardScaler().fit_transform(data.data).astype("float32")
y = data.target.astype("float32")

# Bring the two classes to the same size, then hold out a fifth.
minority = np.flatnonzero(y == 0)
majority = np.flatnonzero(y == 1)
resampled = rng.choice(minority, size=3 * len(majority), replace=True)
rows = np.concatenate([np.repeat(majority, 3), resampled])
rng.shuffle(rows)
X, y = X[rows], y[rows]
cut = int(0.8 * len(X))
X_train, X_val = X[:cut], X[cut:]
y_train, y_val = y[:cut], y[cut:]
print(f"{len(X_train)} rows to train on, {len(X_val)} to validate on, share of positives {y.mean():.2f}")

inputs = keras.Input(shape=(X.shape[1],))
x = layers.Dense(32, activation="relu", kernel_regularizer=regularizers.L2(1e-4))(inputs)
x = layers.Dropout(0.2)(x)
x = layers.Dense(16, activation="relu", kernel_regularizer=regularizers.L2(1e-4))(x)
outputs = layers.Dense(1, activation="sigmoid")(x)
model = keras.Model(inputs, outputs)
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="binary_crossentropy", metrics=["accuracy"])
history = model.fit(X_train, y_train, epochs=8, batch_size=48, validation_data=(X_val, y_val), verbose=2)
print("validation accuracy:", round(max(history.history["val_accuracy"]), 4))
