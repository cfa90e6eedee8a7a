import os

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_diabetes

keras.utils.set_random_seed(6)
X, y = load_diabetes(return_X_y=True)
X = (X / X.std(axis=0)).astype("float32")
y = ((y - y.mean()) / y.std()).astype("float32")
perm = np.random.permutation(len(X))
X, y = X[perm], y[perm]

X_train, y_train = X[:96], y[:96]
X_val, y_val = X[96:242], y[96:242]
X_test, y_test = X[242:], y[242:]

model = keras.Sequential(
    [
        layers.Input((10,)),
        layers.Dense(256, activation="relu"),
        layers.Dense(256, activation="relu"),
        layers.Dense(1),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse", metrics=["mae"])
history = model.fit(
    X_train,
    y_train[:, None],
    validation_data=(X_val, y_val[:, None]),
    epochs=120,
    batch_size=24,
    verbose=0,
)
for epoch, (a, b) in enumerate(zip(history.history["loss"], history.history["val_loss"])):
    if epoch % 15 == 14:
        print(f"epoch {epoch + 1:3d}  loss {a:.4f}  val_loss {b:.4f}")
print("test:", model.evaluate(X_test, y_test[:, None], verbose=0))
