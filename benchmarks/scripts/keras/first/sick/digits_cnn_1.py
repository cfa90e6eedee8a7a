import os

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(1)
num_classes = 10
input_shape = (8, 8, 1)

# Scale images to the [0, 1] range
images, labels = load_digits(return_X_y=True)
images = images.reshape(-1, 8, 8, 1).astype("float32") / 16
order = np.random.permutation(len(images))
images, labels = images[order], labels[order]
x_train, y_train = images[:1440], labels[:1440]
x_test, y_test = images[1440:], labels[1440:]
print("x_train shape:", x_train.shape)
print(x_train.shape[0], "train samples")
print(x_test.shape[0], "test samples")

model = keras.Sequential()
model.add(keras.Input(shape=input_shape))
model.add(layers.Conv2D(12, kernel_size=(3, 3), activation="relu"))
model.add(layers.MaxPooling2D(pool_size=(2, 2)))
model.add(layers.Flatten())
model.add(layers.Dense(48, activation="relu"))
model.add(layers.Dense(num_classes, activation="softmax"))
loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer="adam", loss=loss_fn, metrics=["accuracy"])
model.fit(x_train, y_train, batch_size=48, epochs=12, validation_split=0.1, verbose=2)

score = model.evaluate(x_test, y_test, verbose=0)
print("Test loss:", score[0])
print("Test accuracy:", score[1])
