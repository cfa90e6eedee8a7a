"""Digits with dropout, everything by hand."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


class Dense:
    def __init__(self, rng, n_in, n_out):
        self.W = rng.normal(0, np.sqrt(2 / n_in), (n_in, n_out))
        self.b = np.zeros(n_out)

    def forward(self, x, training):
        self.x = x
        return x @ self.W + self.b

    def backward(self, g):
        self.gW, self.gb = self.x.T @ g, g.sum(0)
        return g @ self.W.T


class Relu:
    def forward(self, x, training):
        self.on = x > 0
        return np.where(self.on, x, 0.0)

    def backward(self, g):
        return g * self.on


class Dropout:
    def __init__(self, rng, p):
        self.rng = rng
        self.keep = 1 - p

    def forward(self, x, training):
        if not training:
            self.mask = 1.0
            return x
        self.mask = (self.rng.random(x.shape) < self.keep) / self.keep
        return x * self.mask

    def backward(self, g):
        return g * self.mask


class Model:
    def __init__(self, layers):
        self.layers = layers

    def forward(self, x, training=True):
        for layer in self.layers:
            x = layer.forward(x, training)
        return x

    def backward(self, g):
        for layer in reversed(self.layers):
            g = layer.backward(g)

    def step(self, lr, decay):
        for layer in self.layers:
            if isinstance(layer, Dense):
                layer.W -= lr * (layer.gW + decay * layer.W)
                layer.b -= lr * layer.gb


def cross_entropy(scores, y):
    scores = scores - scores.max(axis=1, keepdims=True)
    logp = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    grad = np.exp(logp)
    grad[np.arange(len(y)), y] -= 1
    return -logp[np.arange(len(y)), y].mean(), grad / len(y)


def evaluate(model, X, y):
    scores = model.forward(X)
    loss, _ = cross_entropy(scores, y)
    return loss, (scores.argmax(1) == y).mean()


def main():
    rng = np.random.default_rng(3)
    X, y = load_digits(return_X_y=True)
    X = X / 8.0 - 1.0
    X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.25, random_state=3)
    model = Model(
        [
            Dense(rng, 64, 96),
            Relu(),
            Dropout(rng, 0.5),
            Dense(rng, 96, 64),
            Relu(),
            Dropout(rng, 0.5),
            Dense(rng, 64, 10),
        ]
    )
    lr = 0.1
    for epoch in range(1, 41):
        order = rng.permutation(len(X_train))
        for i in range(0, len(order), 32):
            idx = order[i : i + 32]
            loss, grad = cross_entropy(model.forward(X_train[idx], training=True), y_train[idx])
            model.backward(grad)
            model.step(lr, decay=1e-4)
        if epoch % 5 == 0:
            val_loss, val_acc = evaluate(model, X_val, y_val)
            print(f"epoch {epoch}: batch loss {loss:.3f}  val loss {val_loss:.3f}  val accuracy {val_acc:.3f}")
        if epoch == 25:
            lr *= 0.3


if __name__ == "__main__":
    main()
