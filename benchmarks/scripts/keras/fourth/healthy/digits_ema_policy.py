"""bfloat16 arithmetic with float32 weights, averaged weights of the optimiser, smoothed labels, mixup."""
import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

keras.mixed_precision.set_global_policy("mixed_bfloat16")
keras.utils.set_random_seed(71)


def mixed(x, y, batch, rng):
    while True:
        order = rng.permutation(len(x))
        for i in range(0, len(x) - batch + 1, batch):
            a = order[i : i + batch]
            b = rng.permutation(a)
            share = rng.beta(0.2, 0.2, (batch, 1)).astype("float32")
            yield share * x[a] + (1 - share) * x[b], share * y[a] + (1 - share) * y[b]


def block(x, width):
    y = layers.Dense(width, use_bias=False)(x)
    y = layers.BatchNormalization(momentum=0.9)(y)
    y = layers.Activation("relu")(y)
    return layers.Add()([x, y])


images, labels = load_digits(return_X_y=True)
images = (images / 16.0 - 0.305).astype("float32") / 0.376
targets = keras.utils.to_categorical(labels, 10).astype("float32")
x, x_val, y, y_val = train_test_split(images, targets, test_size=0.25, random_state=71, stratify=labels)

inputs = keras.Input((64,))
h = layers.Dense(64)(inputs)
h = block(block(h, 64), 64)
outputs = layers.Dense(10, activation="softmax", dtype="float32")(h)
model = keras.Model(inputs, outputs)

BATCH, EPOCHS = 48, 20
per_epoch = len(x) // BATCH
rate = keras.optimizers.schedules.CosineDecay(2e-3, EPOCHS * per_epoch, alpha=0.02)
model.compile(
    optimizer=keras.optimizers.AdamW(rate, weight_decay=1e-3, use_ema=True, ema_momentum=0.98, ema_overwrite_frequency=None),
    loss=keras.losses.CategoricalCrossentropy(label_smoothing=0.05),
    metrics=["accuracy"],
)
history = model.fit(
    mixed(x, y, BATCH, np.random.default_rng(71)),
    steps_per_epoch=per_epoch,
    epochs=EPOCHS,
    validation_data=(x_val, y_val),
    verbose=0,
).history
for e in range(1, EPOCHS, 3):
    print(f"epoch {e + 1:2d}: loss {history['loss'][e]:.4f}  val_loss {history['val_loss'][e]:.4f}  val_acc {history['val_accuracy'][e]:.3f}")

model.optimizer.finalize_variable_values(model.trainable_variables)
print("with the averaged weights:", model.evaluate(x_val, y_val, verbose=0))
