import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
from keras import layers
from keras.callbacks import Callback, LearningRateScheduler
from sklearn.datasets import load_digits

keras.utils.set_random_seed(2)


def step_decay(epoch, lr):
    drop = 0.8
    return float(lr * drop**epoch)


class EpochLogger(Callback):
    def on_epoch_end(self, epoch, logs=None):
        logs = logs or {}
        print(
            f"epoch {epoch + 1:2d} loss {logs['loss']:.4f} acc {logs['accuracy']:.4f}"
            f" val_loss {logs['val_loss']:.4f} val_acc {logs['val_accuracy']:.4f}"
        )


digits = load_digits()
x = digits.data.astype("float32") / 16.0 - 0.5
y = digits.target
rng = np.random.default_rng(2)
idx = rng.permutation(len(x))
x_train, y_train, x_val, y_val = x[idx[:1400]], y[idx[:1400]], x[idx[1400:]], y[idx[1400:]]

model = keras.Sequential(
    [
        keras.Input((64,)),
        layers.Dense(64, activation="tanh"),
        layers.Dense(64, activation="tanh"),
        layers.Dense(10, activation="softmax"),
    ]
)
model.compile(
    optimizer=keras.optimizers.SGD(learning_rate=0.05, momentum=0.5),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
)
model.fit(
    x_train,
    y_train,
    batch_size=70,
    epochs=20,
    validation_data=(x_val, y_val),
    callbacks=[LearningRateScheduler(step_decay), EpochLogger()],
    verbose=0,
)
