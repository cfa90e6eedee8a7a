import os

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler

keras.utils.set_random_seed(44)

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=44)
scaler = MinMaxScaler(feature_range=(-1, 1))
X_train = scaler.fit_transform(X_train)
X_test = scaler.transform(X_test)

model = keras.models.Sequential()
model.add(keras.layers.Input(shape=(30,)))
model.add(keras.layers.Dense(30, activation="relu"))
model.add(keras.layers.Dense(15, activation="relu"))
model.add(keras.layers.Dense(1, activation="softmax"))

model.compile(loss="binary_crossentropy", optimizer="adam", metrics=["accuracy"])

model.fit(
    x=X_train.astype("float32"),
    y=y_train.reshape(-1, 1).astype("float32"),
    batch_size=25,
    epochs=20,
    validation_data=(X_test.astype("float32"), y_test.reshape(-1, 1).astype("float32")),
    verbose=2,
)

probabilities = model.predict(X_test.astype("float32"), verbose=0).ravel()
predictions = (probabilities > 0.5).astype(int)
print("correct:", (predictions == y_test).sum(), "of", len(y_test))
