import os
os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np
from keras import callbacks, layers
from sklearn.datasets import make_friedman1
from sklearn.metrics import r2_score

keras.utils.set_random_seed(42)

X, Y = make_friedman1(n_samples=2500, n_features=8, noise=2.0, random_state=42)
x_mean, x_std = X[:1800].mean(0), X[:1800].std(0)
y_mean, y_std = Y[:1800].mean(), Y[:1800].std()
X = ((X - x_mean) / x_std).astype("float32")
Y = ((Y - y_mean) / y_std).astype("float32")
train, val, test = slice(0, 1800), slice(1800, 2100), slice(2100, None)

inputs = keras.Input((8,))
h = layers.Dense(64, activation="swish", kernel_regularizer=keras.regularizers.L2(1e-4))(inputs)
h = layers.LayerNormalization()(h)
h = layers.Dense(32, activation="swish", kernel_regularizer=keras.regularizers.L2(1e-4))(h)
model = keras.Model(inputs, layers.Dense(1)(h))
model.compile(optimizer=keras.optimizers.RMSprop(2e-3), loss=keras.losses.Huber(delta=1.0), metrics=["mae"])

history = model.fit(
    X[train],
    Y[train],
    validation_data=(X[val], Y[val]),
    epochs=60,
    batch_size=64,
    verbose=0,
    callbacks=[
        callbacks.ReduceLROnPlateau(monitor="val_loss", factor=0.3, patience=4, min_lr=1e-5),
        callbacks.EarlyStopping(monitor="val_loss", patience=10, restore_best_weights=True),
    ],
).history

n = len(history["loss"])
for e in range(0, n, 5):
    print(f"epoch {e + 1}: loss {history['loss'][e]:.4f} val {history['val_loss'][e]:.4f} rate {history['learning_rate'][e]:.1e}")
pred = model.predict(X[test], verbose=0)[:, 0]
best = 1 - (2.0 / y_std) ** 2
print(f"stopped after {n} epochs; R2 on the test part {r2_score(Y[test], pred):.3f}; the noise allows about {best:.3f}")
