import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
from keras import layers
from sklearn.datasets import make_classification

RUNS = ["narrow", "wide"]
WIDTH = {"narrow": 16, "wide": 32}


def seed_for(name):
    """Every run has a seed of its own, always the same for the same name."""
    return hash("parts/" + name) % 2**31


def dataset():
    """Which parts will be sent back? Twelve measures of each; the same for every run."""
    x, y = make_classification(
        4000, 12, n_informative=8, n_clusters_per_class=3, class_sep=1.2, flip_y=0.05, random_state=0
    )
    y = y.astype("float32")[:, None]
    cut = 3000
    mean, std = x[:cut].mean(0), x[:cut].std(0)
    x = ((x - mean) / std).astype("float32")
    return (x[:cut], y[:cut]), (x[cut:], y[cut:])


def network(width):
    inputs = keras.Input((12,))
    h = layers.Dense(width, activation="relu", kernel_regularizer=keras.regularizers.L2(2e-4))(inputs)
    h = layers.Dropout(0.1)(h)
    h = layers.Dense(width, activation="relu", kernel_regularizer=keras.regularizers.L2(2e-4))(h)
    return keras.Model(inputs, layers.Dense(1, activation="sigmoid")(h))


def run(name):
    seed = seed_for(name)
    keras.utils.set_random_seed(seed)
    train, val = dataset()
    model = network(WIDTH[name])
    model.compile(optimizer=keras.optimizers.Adam(2e-3), loss="binary_crossentropy", metrics=["accuracy"])
    history = model.fit(*train, validation_data=val, epochs=20, batch_size=50, verbose=0).history
    for e in range(4, 20, 5):
        print(f"  {name} epoch {e + 1:2d}  loss {history['loss'][e]:.5f}  val_loss {history['val_loss'][e]:.5f}")
    return history["val_loss"][-1], history["val_accuracy"][-1]


results = {}
for name in RUNS:
    print("run", name)
    results[name] = run(name)

print("\nname     val_loss  val_acc")
for name, (loss, acc) in results.items():
    print(f"{name:8s} {loss:.5f}   {acc:.4f}")
print("better:", min(results, key=lambda n: results[n][0]))
