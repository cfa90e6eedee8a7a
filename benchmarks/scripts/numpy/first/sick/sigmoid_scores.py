"""Is it an even digit? A network of sigmoids with parameters W1, b1, W2, b2, W3, b3."""

import numpy as np
from sklearn.datasets import load_digits

np.random.seed(2)


def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-np.clip(z, -60, 60)))


def load():
    digits = load_digits()
    # brighter pictures, as they come from the scanner: 0..255
    X = np.round(digits.data * 255 / 16)
    y = (digits.target % 2 == 0).astype(float).reshape(-1, 1)
    order = np.random.permutation(len(X))
    X, y = X[order], y[order]
    return X[:1400], y[:1400], X[1400:], y[1400:]


def initialise(sizes):
    weights = {}
    for i, (a, b) in enumerate(zip(sizes[:-1], sizes[1:]), start=1):
        weights[f"W{i}"] = np.random.randn(a, b) * np.sqrt(1.0 / a)
        weights[f"b{i}"] = np.zeros(b)
    return weights


def forward(X, w):
    a1 = sigmoid(X @ w["W1"] + w["b1"])
    a2 = sigmoid(a1 @ w["W2"] + w["b2"])
    a3 = sigmoid(a2 @ w["W3"] + w["b3"])
    return a1, a2, a3


def log_loss(p, y):
    p = np.clip(p, 1e-9, 1 - 1e-9)
    return float(-(y * np.log(p) + (1 - y) * np.log(1 - p)).mean())


def gradients(X, y, w, activations):
    a1, a2, a3 = activations
    d3 = (a3 - y) / len(y)
    d2 = (d3 @ w["W3"].T) * a2 * (1 - a2)
    d1 = (d2 @ w["W2"].T) * a1 * (1 - a1)
    return {
        "W3": a2.T @ d3,
        "b3": d3.sum(axis=0),
        "W2": a1.T @ d2,
        "b2": d2.sum(axis=0),
        "W1": X.T @ d1,
        "b1": d1.sum(axis=0),
    }


def train(epochs=40, batch=35, lr=1.0):
    X_train, y_train, X_test, y_test = load()
    w = initialise([64, 32, 16, 1])
    for epoch in range(1, epochs + 1):
        order = np.random.permutation(len(X_train))
        total = 0.0
        for i in range(0, len(order), batch):
            pick = order[i : i + batch]
            xb, yb = X_train[pick], y_train[pick]
            activations = forward(xb, w)
            total += log_loss(activations[-1], yb) * len(pick)
            grads = gradients(xb, yb, w, activations)
            for name in w:
                w[name] -= lr * grads[name]
        if epoch % 5 == 0:
            p = forward(X_test, w)[-1]
            accuracy = ((p > 0.5) == (y_test > 0.5)).mean()
            print(
                f"epoch {epoch}: train loss {total / len(order):.4f}"
                f"  test loss {log_loss(p, y_test):.4f}  test accuracy {accuracy:.3f}"
            )
    return w


if __name__ == "__main__":
    train()
