import os
os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

keras.utils.set_random_seed(7)

images, labels = load_digits(return_X_y=True)
x = (images / 16.0).astype("float32").reshape(-1, 8, 8, 1)
x_train, x_test, y_train, y_test = train_test_split(x, labels, test_size=0.2, random_state=7, stratify=labels)

inputs = keras.Input(shape=(8, 8, 1))
h = layers.Conv2D(16, 3, padding="same", activation="relu")(inputs)
h = layers.MaxPooling2D()(h)
h = layers.Flatten()(h)
h = layers.Dense(48, activation="relu")(h)
outputs = layers.Dense(1, name="digit")(h)
model = keras.Model(inputs, outputs, name="digit_reader")

model.compile(
    optimizer=keras.optimizers.Adam(2e-3),
    loss="mse",
)
history = model.fit(x_train, y_train, epochs=15, batch_size=64, validation_data=(x_test, y_test), verbose=0).history

for epoch in range(0, 15, 2):
    print(f"epoch {epoch + 1:2d} loss {history['loss'][epoch]:.4f} val loss {history['val_loss'][epoch]:.4f}")

answers = np.rint(model.predict(x_test, verbose=0)[:, 0])
print(f"right: {np.mean(answers == y_test):.3f}")
