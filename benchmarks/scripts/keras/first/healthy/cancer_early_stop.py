import os

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
from keras import layers
from keras.callbacks import EarlyStopping, ReduceLROnPlateau
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(55)
X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=55)
X_train, X_val, y_train, y_val = train_test_split(X_train, y_train, test_size=0.2, stratify=y_train, random_state=55)
scaler = StandardScaler().fit(X_train)
X_train, X_val, X_test = (scaler.transform(part).astype("float32") for part in (X_train, X_val, X_test))

model = keras.Sequential(
    [
        layers.Input((30,)),
        layers.Dense(32, use_bias=False),
        layers.BatchNormalization(),
        layers.Activation("relu"),
        layers.Dropout(0.3),
        layers.Dense(16, activation="relu"),
        layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="binary_crossentropy", metrics=["accuracy"])
callbacks = [
    EarlyStopping(monitor="val_loss", patience=12, restore_best_weights=True),
    ReduceLROnPlateau(monitor="val_loss", factor=0.5, patience=5, min_lr=1e-5),
]
history = model.fit(
    X_train,
    y_train.astype("float32")[:, None],
    validation_data=(X_val, y_val.astype("float32")[:, None]),
    epochs=40,
    batch_size=28,
    callbacks=callbacks,
    verbose=2,
)
loss, accuracy = model.evaluate(X_test, y_test.astype("float32")[:, None], verbose=0)
print(f"{len(history.history['loss'])} epochs, test loss {loss:.4f}, test accuracy {accuracy:.4f}")
