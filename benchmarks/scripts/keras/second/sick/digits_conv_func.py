import os
os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import torch
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

torch.set_num_threads(1)
keras.utils.set_random_seed(5)


def conv_block(x, filters):
    x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization(momentum=0.9)(x)
    return layers.ReLU()(x)


def build_model(classes=10):
    inp = keras.Input(shape=(8, 8, 1))
    x = conv_block(inp, 8)
    x = layers.MaxPooling2D(2)(x)
    x = conv_block(x, 16)
    x = layers.Flatten()(x)
    x = layers.Dense(32, activation="relu")(x)
    out = layers.Dense(classes)(x)
    return keras.Model(inp, out, name="digits_net")


digits = load_digits()
x = digits.images.astype("float32")[..., None] / 16.0
xtr, xte, ytr, yte = train_test_split(x, digits.target, test_size=0.2, stratify=digits.target, random_state=5)

model = build_model()
model.compile(
    optimizer=keras.optimizers.Adam(learning_rate=2e-3),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
)

for epoch in range(7):
    logs = model.fit(xtr, ytr, batch_size=48, epochs=1, verbose=0).history
    val_loss, val_acc = model.evaluate(xte, yte, batch_size=120, verbose=0)
    print(f"epoch {epoch}: loss {logs['loss'][0]:.4f} acc {logs['accuracy'][0]:.4f} | val loss {val_loss:.4f} acc {val_acc:.4f}")
