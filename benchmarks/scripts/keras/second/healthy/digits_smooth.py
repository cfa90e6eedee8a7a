import os
os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import torch
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

torch.set_num_threads(1)
keras.utils.set_random_seed(20)

digits = load_digits()
x = digits.images[..., None].astype("float32") / 16.0
y = keras.utils.to_categorical(digits.target, 10)
x_rest, x_test, y_rest, y_test = train_test_split(x, y, test_size=0.2, random_state=20, stratify=digits.target)
x_train, x_val, y_train, y_val = train_test_split(x_rest, y_rest, test_size=0.15, random_state=21)

model = keras.Sequential(
    [
        keras.Input((8, 8, 1)),
        layers.Conv2D(16, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(24, 3, padding="same", activation="relu"),
        layers.Flatten(),
        layers.Dropout(0.3),
        layers.Dense(10),
    ]
)
model.compile(
    optimizer=keras.optimizers.AdamW(3e-3, weight_decay=1e-3),
    loss=keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1),
    metrics=["accuracy"],
)


class Line(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print(f"epoch {epoch + 1:2d} | loss {logs['loss']:.4f} acc {logs['accuracy']:.3f} | val {logs['val_loss']:.4f} {logs['val_accuracy']:.3f}")


stop = keras.callbacks.EarlyStopping(monitor="val_loss", patience=4, restore_best_weights=True)
model.fit(x_train, y_train, batch_size=48, epochs=14, validation_data=(x_val, y_val), callbacks=[stop, Line()], verbose=0)
loss, acc = model.evaluate(x_test, y_test, verbose=0)
print(f"test: loss {loss:.4f}, accuracy {acc:.3f}")
