import os
os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np
from keras import layers
from sklearn.datasets import make_classification
from sklearn.metrics import classification_report
from sklearn.model_selection import train_test_split

keras.utils.set_random_seed(8)
x, y = make_classification(2800, 12, n_informative=8, weights=[0.74], class_sep=1.5, flip_y=0.0, random_state=8)
xa, xb, ya, yb = train_test_split(x, y, test_size=0.25, stratify=y, random_state=8)

norm = layers.Normalization()
norm.adapt(xa.astype("float32"))


def build():
    inp = keras.Input((12,), name="customer")
    x = norm(inp)
    x = layers.Dense(40, activation="relu")(x)
    skip = x
    x = layers.Dense(40, activation="relu")(x)
    x = layers.Add()([x, skip])
    x = layers.Dropout(0.2)(x)
    out = layers.Dense(1, activation="sigmoid", name="leaves")(x)
    return keras.Model(inp, out)


counts = np.bincount(ya)
class_weight = {c: len(ya) / (2 * n) for c, n in enumerate(counts)}
print("counts", counts, "weights", class_weight)

model = build()
model.compile(
    optimizer=keras.optimizers.Adam(3e-3, clipnorm=1.0),
    loss="binary_crossentropy",
    metrics=[keras.metrics.BinaryAccuracy(name="acc"), keras.metrics.AUC(name="auc")],
)
hist = model.fit(xa.astype("float32"), ya, batch_size=64, epochs=14, class_weight=class_weight, validation_data=(xb.astype("float32"), yb), verbose=0)
for i in range(1, 14, 2):
    print(f"epoch {i + 1}", {k: round(float(v[i]), 4) for k, v in hist.history.items()})

pred = (model.predict(xb.astype("float32"), verbose=0)[:, 0] > 0.5).astype(int)
print(classification_report(yb, pred, digits=3))
