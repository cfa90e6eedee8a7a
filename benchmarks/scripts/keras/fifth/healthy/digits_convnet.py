import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def build():
    return keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(16, 3, padding="same", use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.Conv2D(32, 3, strides=2, padding="same", use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.Flatten(),
            layers.Dropout(0.3),
            layers.Dense(10, activation="softmax"),
        ]
    )


def main():
    keras.utils.set_random_seed(1)
    digits = load_digits()
    x = (digits.images[..., None] / 8.0 - 1.0).astype("float32")
    x_train, x_rest, y_train, y_rest = train_test_split(x, digits.target, test_size=0.4, random_state=1)
    x_val, x_test, y_val, y_test = train_test_split(x_rest, y_rest, test_size=0.5, random_state=1)
    model = build()
    steps = 10 * (len(x_train) // 32 + 1)
    model.compile(
        optimizer=keras.optimizers.AdamW(keras.optimizers.schedules.CosineDecay(2e-3, steps), weight_decay=1e-3),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    best = keras.callbacks.EarlyStopping(monitor="val_loss", patience=4, restore_best_weights=True)
    model.fit(x_train, y_train, batch_size=32, epochs=10, validation_data=(x_val, y_val), callbacks=[best], verbose=2)
    loss, accuracy = model.evaluate(x_test, y_test, verbose=0)
    print(f"test loss {loss:.4f}, accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
