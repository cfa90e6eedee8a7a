import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
from keras import layers
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(20)

X, y = load_wine(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=20, stratify=y)
scaler = StandardScaler()
X_train = scaler.fit_transform(X_train).astype("float32")
X_test = scaler.transform(X_test).astype("float32")
y_train = keras.utils.to_categorical(y_train, 3)
y_test = keras.utils.to_categorical(y_test, 3)


optimizer = keras.optimizers.Adam(learning_rate=2e-3)
inputs = keras.Input(shape=(13,), name="chemistry")
x = layers.Dense(24, activation="relu", name="dense_1")(inputs)
x = layers.Dense(24, activation="relu", name="dense_2")(x)
outputs = layers.Dense(3, name="cultivar")(x)
model = keras.Model(inputs, outputs, name="wine")
model.compile(loss="categorical_crossentropy", optimizer=optimizer, metrics=["accuracy"])
model.summary()
history = model.fit(
    X_train,
    y_train,
    batch_size=16,
    epochs=35,
    validation_data=(X_test, y_test),
    verbose=0,
)
for epoch in range(0, 35, 5):
    row = {name: round(values[epoch], 4) for name, values in history.history.items()}
    print(epoch, row)
print("final test accuracy", history.history["val_accuracy"][-1])
