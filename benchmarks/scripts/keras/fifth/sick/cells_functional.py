import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler


def load_data(seed):
    data = load_breast_cancer()
    x_train, x_val, y_train, y_val = train_test_split(
        data.data, data.target, test_size=0.25, stratify=data.target, random_state=seed
    )
    scaler = StandardScaler()
    x_train = scaler.fit_transform(x_train).astype("float32")
    x_val = x_val.astype("float32")
    return (x_train, y_train.astype("float32")), (x_val, y_val.astype("float32"))


def residual(x, units, rate):
    h = layers.Dense(units, activation="relu")(x)
    h = layers.Dropout(rate)(h)
    h = layers.Dense(units)(h)
    return layers.Activation("relu")(layers.Add()([x, h]))


def build_model(n_features, units=32, blocks=2):
    inputs = keras.Input((n_features,))
    x = layers.Dense(units, activation="relu")(inputs)
    for _ in range(blocks):
        x = residual(x, units, rate=0.2)
    outputs = layers.Dense(1, activation="sigmoid")(x)
    return keras.Model(inputs, outputs, name="cells")


def main():
    keras.utils.set_random_seed(7)
    (x_train, y_train), (x_val, y_val) = load_data(seed=7)
    model = build_model(x_train.shape[1])
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="binary_crossentropy", metrics=["accuracy"])
    history = model.fit(
        x_train,
        y_train,
        validation_data=(x_val, y_val),
        epochs=20,
        batch_size=32,
        verbose=0,
    ).history
    for epoch in range(3, 20, 4):
        print(
            f"epoch {epoch}: loss {history['loss'][epoch]:.4f}  acc {history['accuracy'][epoch]:.3f}"
            f"  val_loss {history['val_loss'][epoch]:.4f}  val_acc {history['val_accuracy'][epoch]:.3f}"
        )
    scores = model.predict(x_val, verbose=0).ravel()
    print("share called benign:", np.mean(scores > 0.5).round(3), "truly:", y_val.mean().round(3))


if __name__ == "__main__":
    main()
