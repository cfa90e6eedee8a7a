import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(27)

X, y = load_diabetes(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=27)
x_scaler, y_scaler = StandardScaler(), StandardScaler()
X_train = x_scaler.fit_transform(X_train).astype(np.float32)
X_test = x_scaler.transform(X_test).astype(np.float32)
y_train = y_scaler.fit_transform(y_train[:, None]).astype(np.float32)
y_test = y_scaler.transform(y_test[:, None]).astype(np.float32)

inputs = layers.Input(shape=(10,))
hidden = layers.Dense(32, activation="relu")(inputs)
hidden = layers.Dense(16, activation="relu")(hidden)
outputs = layers.Dense(1, activation="sigmoid")(hidden)
model = keras.Model(inputs=inputs, outputs=outputs)
model.compile(loss="mean_squared_error", optimizer=keras.optimizers.RMSprop(1e-3), metrics=["mae"])

early = keras.callbacks.EarlyStopping(monitor="loss", patience=20, restore_best_weights=True)
history = model.fit(X_train, y_train, epochs=30, batch_size=32, callbacks=[early], verbose=0)
print("training loss every five epochs:", np.round(history.history["loss"][::5], 3))

predicted = y_scaler.inverse_transform(model.predict(X_test, verbose=0))
measured = y_scaler.inverse_transform(y_test)
rmse = float(np.sqrt(np.mean((predicted - measured) ** 2)))
print(f"RMSE on the test set: {rmse:.1f} (standard deviation of the target: {measured.std():.1f})")
