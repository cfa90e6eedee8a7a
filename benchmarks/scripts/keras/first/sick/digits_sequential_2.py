import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(5)

# Build the arrays class by class, as they would come out of one folder per class.
digits = load_digits()
train_images, train_labels, test_images, test_labels = [], [], [], []
for cls in range(10):
    members = digits.data[digits.target == cls] / 16.0
    train_images.append(members[:144])
    train_labels.append(np.full(len(members[:144]), cls))
    test_images.append(members[144:])
    test_labels.append(np.full(len(members[144:]), cls))
x_train, y_train = np.concatenate(train_images).astype("float32"), np.concatenate(train_labels)
x_test, y_test = np.concatenate(test_images).astype("float32"), np.concatenate(test_labels)
print(x_train.shape, y_train.shape, x_test.shape, y_test.shape)

model = keras.Sequential()
model.add(keras.Input((64,)))
model.add(layers.Dense(64, activation="relu"))
model.add(layers.Dense(64, activation="relu"))
model.add(layers.Dense(10, activation="softmax"))
model.compile(
    optimizer=keras.optimizers.SGD(learning_rate=0.1, momentum=0.9),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
)
history = model.fit(x_train, y_train, batch_size=36, epochs=10, shuffle=False, verbose=2)
loss, acc = model.evaluate(x_test, y_test, verbose=0)
print(f"test loss {loss:.4f} accuracy {acc:.4f}")
