import os
os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
from keras import layers, ops
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

MARGIN = 0.3


class Embedding(keras.Model):
    def __init__(self, dim=12):
        super().__init__()
        self.hidden = layers.Dense(96, activation="relu")
        self.project = layers.Dense(dim)

    def call(self, x):
        z = self.project(self.hidden(x))
        return z / ops.sqrt(ops.sum(z * z, axis=-1, keepdims=True) + 1e-8)


class Triplet(keras.Model):
    """Anchor, positive and negative go through one and the same embedding."""

    def __init__(self, embedding):
        super().__init__()
        self.embedding = embedding

    def call(self, triple):
        a, p, n = (self.embedding(triple[:, i]) for i in range(3))
        near = ops.sum(ops.square(a - p), axis=-1)
        far = ops.sum(ops.square(a - n), axis=-1)
        return ops.stack([near, far], axis=-1)


def triplet_loss(_, distances):
    return ops.mean(ops.relu(distances[:, 0] - distances[:, 1] + MARGIN))


class TripletData(keras.utils.PyDataset):
    def __init__(self, x, y, batch, steps, seed):
        super().__init__()
        self.x, self.y, self.batch, self.steps = x, y, batch, steps
        self.rng = np.random.default_rng(seed)
        self.rows = [np.flatnonzero(y == c) for c in range(10)]

    def __len__(self):
        return self.steps

    def __getitem__(self, _):
        anchor = self.rng.integers(0, len(self.x), self.batch)
        positive = np.array([self.rng.choice(self.rows[self.y[a]]) for a in anchor])
        other = (self.y[anchor] + self.rng.integers(1, 10, self.batch)) % 10
        negative = np.array([self.rng.choice(self.rows[c]) for c in other])
        return self.x[np.stack([anchor, positive, negative], 1)], np.zeros(self.batch, "float32")


keras.utils.set_random_seed(3)
digits = load_digits()
order = np.random.default_rng(3).permutation(len(digits.target))
x, y = (digits.data[order] / 16.0).astype("float32"), digits.target[order]
x_train, y_train, x_test, y_test = x[:1000], y[:1000], x[1000:], y[1000:]

embedding = Embedding()
model = Triplet(embedding)
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss=triplet_loss)


def nearest():
    z_train, z_test = embedding.predict(x_train, verbose=0), embedding.predict(x_test, verbose=0)
    return KNeighborsClassifier(1).fit(z_train[:100], y_train[:100]).score(z_test, y_test)


print(f"before: {nearest():.3f}")
for epoch in range(8):
    log = model.fit(TripletData(x_train, y_train, 64, 40, epoch), epochs=1, verbose=0)
    print(f"epoch {epoch + 1}: triplet loss {log.history['loss'][0]:.4f}, nearest neighbour among 100: {nearest():.3f}")
