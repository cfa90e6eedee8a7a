import os
os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np
from sklearn.datasets import make_moons

keras.utils.set_random_seed(77)
SAMPLES, EPOCHS = 1500, 18


def get_data():
    x, y = make_moons(n_samples=SAMPLES, noise=0.15, random_state=77)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    n = int(SAMPLES * 0.8)
    return (x[:n].astype("float32"), y[:n].astype("float32")), (x[n:].astype("float32"), y[n:].astype("float32"))


def get_model():
    m = keras.Sequential()
    m.add(keras.Input(shape=(2,)))
    m.add(keras.layers.Dense(24, activation="relu", kernel_initializer="he_normal"))
    m.add(keras.layers.Dense(24, activation="relu", kernel_initializer="he_normal"))
    m.add(keras.layers.Dense(1, activation="softmax"))
    return m


(x_train, y_train), (x_val, y_val) = get_data()
model = get_model()
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss="binary_crossentropy", metrics=["accuracy"])
print(f"{model.count_params()} parameters, {np.mean(y_train):.2f} positives")

history = model.fit(x_train, y_train, validation_data=(x_val, y_val), epochs=EPOCHS, batch_size=40, verbose=0)
keys = list(history.history)
print("epoch", *keys)
for e in range(0, EPOCHS, 3):
    print(e + 1, *(round(float(history.history[k][e]), 4) for k in keys))

score = model.evaluate(x_val, y_val, verbose=0, return_dict=True)
print("final:", {k: round(v, 4) for k, v in score.items()})
