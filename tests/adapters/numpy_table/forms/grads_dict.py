# ruff: noqa
"""A class that keeps its weights in self.params and its gradients in self.grads."""

import numpy as np
from sklearn.datasets import load_diabetes


class Regressor:
    """Two hidden layers, for a real target."""

    def __init__(self, sizes=(10, 24, 24, 1), seed=0):
        rng = np.random.default_rng(seed)
        self.params = {}
        for i in range(len(sizes) - 1):
            self.params[f"W{i + 1}"] = rng.normal(scale=np.sqrt(2 / sizes[i]), size=(sizes[i], sizes[i + 1]))
            self.params[f"b{i + 1}"] = np.zeros(sizes[i + 1])
        self.grads = {k: np.zeros_like(v) for k, v in self.params.items()}

    def parameters(self):
        return self.params

    def forward(self, x):
        p = self.params
        self.x = x
        self.h1 = np.maximum(x @ p["W1"] + p["b1"], 0)
        self.h2 = np.maximum(self.h1 @ p["W2"] + p["b2"], 0)
        return self.h2 @ p["W3"] + p["b3"]

    def backward(self, dout):
        p = self.params
        self.grads["W3"] = self.h2.T @ dout
        self.grads["b3"] = dout.sum(axis=0)
        dh2 = (dout @ p["W3"].T) * (self.h2 > 0)
        self.grads["W2"] = self.h1.T @ dh2
        self.grads["b2"] = dh2.sum(axis=0)
        dh1 = (dh2 @ p["W2"].T) * (self.h1 > 0)
        self.grads["W1"] = self.x.T @ dh1
        self.grads["b1"] = dh1.sum(axis=0)


class Momentum:
    def __init__(self, model, lr=0.02, beta=0.9):
        self.model, self.lr, self.beta = model, lr, beta
        self.v = {k: np.zeros_like(p) for k, p in model.params.items()}

    def step(self):
        for k in self.model.params:
            self.v[k] = self.beta * self.v[k] + self.model.grads[k]
            self.model.params[k] -= self.lr * self.v[k]


def mse(pred, target):
    diff = pred - target
    return (diff**2).mean(), 2 * diff / diff.size


def load():
    x, y = load_diabetes(return_X_y=True)
    x = (x - x.mean(0)) / x.std(0)
    y = (y - y.mean()) / y.std()
    return x, y[:, None]


def fit(model, optimizer, x, y, epochs=20, batch_size=34):
    rng = np.random.default_rng(0)
    for epoch in range(epochs):
        perm = rng.permutation(len(x))
        for i in range(0, len(x), batch_size):
            b = perm[i : i + batch_size]
            pred = model.forward(x[b])
            loss, dpred = mse(pred, y[b])
            model.backward(dpred)
            optimizer.step()


def examined():
    model = Regressor()
    return {"model": model, "train": load(), "loss": mse, "optimizer": Momentum(model)}


def watched(watch):
    x, y = load()
    model = Regressor()
    optimizer = Momentum(model)
    with watch(model, optimizer) as w:
        fit(model, optimizer, x, y)
    return w
