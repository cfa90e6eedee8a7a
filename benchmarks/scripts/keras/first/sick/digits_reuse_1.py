import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

keras.utils.set_random_seed(13)


def make_encoder():
    return keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(12, 3, strides=2, padding="same", activation="relu"),
            layers.Conv2D(24, 3, strides=2, padding="same", activation="relu"),
            layers.Flatten(),
            layers.Dense(32, activation="relu"),
        ],
        name="encoder",
    )


def make_classifier(encoder, classes):
    classifier = keras.Sequential(
        [encoder, layers.Dense(32, activation="relu"), layers.Dense(classes, activation="softmax")],
        name="classifier",
    )
    return classifier


digits = load_digits()
images = (digits.images[..., None] / 16).astype("float32")
x_train, x_val, y_train, y_val = train_test_split(
    images, digits.target, test_size=0.2, random_state=13, stratify=digits.target
)

encoder = make_encoder()
classifier = make_classifier(encoder, 10)
for layer in classifier.layers:
    layer.trainable = False
classifier.compile(
    optimizer=keras.optimizers.Adam(learning_rate=2e-3),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
)
classifier.summary()
classifier.fit(x_train, y_train, epochs=8, batch_size=48, validation_data=(x_val, y_val), verbose=2)
print("accuracy on held-out digits:", classifier.evaluate(x_val, y_val, verbose=0)[1])
