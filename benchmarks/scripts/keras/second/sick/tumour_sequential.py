import os
os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import torch
from keras import layers
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import train_test_split

torch.set_num_threads(1)
keras.utils.set_random_seed(10)

x, y = load_breast_cancer(return_X_y=True)
x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.2, random_state=10, stratify=y)
x_train, x_test = x_train.astype("float32"), x_test.astype("float32")
y_train, y_test = y_train.astype("float32"), y_test.astype("float32")

model = keras.Sequential(
    [
        keras.Input((30,)),
        layers.Dense(32, activation="relu"),
        layers.Dense(16, activation="relu"),
        layers.Dense(1, activation="sigmoid"),
    ],
    name="tumour",
)
model.summary()
model.compile(optimizer=keras.optimizers.SGD(0.02, momentum=0.9), loss="binary_crossentropy", metrics=["accuracy"])

history = model.fit(x_train, y_train, batch_size=24, epochs=20, validation_data=(x_test, y_test), verbose=0)
for i in range(0, 20, 4):
    h = {k: round(float(v[i]), 4) for k, v in history.history.items()}
    print(f"epoch {i + 1}: {h}")

loss, acc = model.evaluate(x_test, y_test, verbose=0)
print(f"test loss {loss:.4f}  test accuracy {acc:.4f}")

probability = model.predict(x_test, verbose=0)[:, 0]
table = confusion_matrix(y_test, probability > 0.5)
print("rows: truth, columns: prediction")
print(table)
