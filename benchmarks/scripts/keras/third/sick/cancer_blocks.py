"""Breast cancer, dense net with batch normalisation; small batches because the laptop is small."""
import os
os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
from keras import layers
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

BATCH = 2
keras.utils.set_random_seed(5)

data = load_breast_cancer()
x_train, x_test, y_train, y_test = train_test_split(
    data.data, data.target, test_size=0.3, random_state=5, stratify=data.target
)
scaler = StandardScaler()
x_train = scaler.fit_transform(x_train).astype("float32")
x_test = scaler.transform(x_test).astype("float32")


def block(units):
    return [layers.Dense(units, use_bias=False), layers.BatchNormalization(), layers.Activation("relu")]


model = keras.Sequential([keras.Input((30,)), *block(32), *block(16), layers.Dense(1, activation="sigmoid")])
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="binary_crossentropy", metrics=["accuracy"])

for round_ in range(5):
    h = model.fit(x_train, y_train, batch_size=BATCH, epochs=1, verbose=0).history
    loss, acc = model.evaluate(x_test, y_test, batch_size=64, verbose=0)
    print(f"epoch {round_ + 1}: train loss {h['loss'][-1]:.4f} acc {h['accuracy'][-1]:.3f} | test loss {loss:.4f} acc {acc:.3f}")
