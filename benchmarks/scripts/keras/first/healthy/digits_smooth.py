import os

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(41)
x, y = load_digits(return_X_y=True)
x = x.astype("float32") / 16
order = np.random.permutation(len(x))
x, y = x[order], keras.utils.to_categorical(y[order], 10)
x_train, y_train, x_val, y_val = x[:1440], y[:1440], x[1440:], y[1440:]

EPOCHS, BATCH = 12, 48
steps = EPOCHS * (len(x_train) // BATCH)
schedule = keras.optimizers.schedules.CosineDecay(
    initial_learning_rate=1e-6,
    decay_steps=steps - 60,
    warmup_target=4e-3,
    warmup_steps=60,
)

inputs = keras.Input((64,))
h = layers.Dense(64, activation="relu")(inputs)
skip = h
h = layers.LayerNormalization()(h)
h = layers.Dense(64, activation="relu")(h)
h = layers.Add()([h, skip])
outputs = layers.Dense(10)(h)
model = keras.Model(inputs, outputs)
model.compile(
    optimizer=keras.optimizers.AdamW(schedule, weight_decay=1e-3, global_clipnorm=1.0),
    loss=keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1),
    metrics=["accuracy"],
)
model.fit(x_train, y_train, batch_size=BATCH, epochs=EPOCHS, validation_data=(x_val, y_val), verbose=2)
