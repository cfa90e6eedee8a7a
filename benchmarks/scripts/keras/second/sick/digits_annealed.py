import os
os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
from keras import layers, optimizers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

keras.utils.set_random_seed(1234)

HYPER = {
    "batch_size": 64,
    "epochs": 20,
    "lr": 2e-3,
    "decay_every": 1,
    "decay_rate": 0.85,
}

x, y = load_digits(return_X_y=True)
x = x.astype("float32") / 16.0
y = keras.utils.to_categorical(y, 10)
x_train, x_val, y_train, y_val = train_test_split(x, y, test_size=0.2, random_state=1234)
steps_per_epoch = len(x_train) // HYPER["batch_size"]
print(f"{len(x_train)} training images, {steps_per_epoch} full batches an epoch")

model = keras.Sequential([layers.Input((64,)), layers.Dense(128, "relu"), layers.Dense(64, "relu"), layers.Dense(10, "softmax")])

schedule = optimizers.schedules.ExponentialDecay(HYPER["lr"], decay_steps=HYPER["decay_every"], decay_rate=HYPER["decay_rate"])
model.compile(optimizer=optimizers.Adam(schedule), loss="categorical_crossentropy", metrics=["accuracy"])


def show(epoch, logs):
    if epoch % 2 == 1:
        print(f"epoch {epoch + 1}: " + ", ".join(f"{k}: {v:.4f}" for k, v in logs.items()))


model.fit(
    x_train,
    y_train,
    batch_size=HYPER["batch_size"],
    epochs=HYPER["epochs"],
    validation_data=(x_val, y_val),
    callbacks=[keras.callbacks.LambdaCallback(on_epoch_end=show)],
    verbose=0,
)
