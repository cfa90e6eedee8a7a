"""Regression on Friedman's function with hand-written layers and Adam."""

import numpy as np
from sklearn.datasets import make_friedman1

rng = np.random.default_rng(10)


class Affine:
    def __init__(self, n_in, n_out):
        self.params = {"W": rng.normal(0, np.sqrt(2 / n_in), (n_in, n_out)), "b": np.zeros(n_out)}
        self.grads = {}

    def forward(self, x):
        self.x = x
        return x @ self.params["W"] + self.params["b"]

    def backward(self, dout):
        self.grads["W"] = self.x.T @ dout
        self.grads["b"] = dout.sum(axis=0)
        return dout @ self.params["W"].T


class Tanh:
    params: dict = {}

    def forward(self, x):
        self.out = np.tanh(x)
        return self.out

    def backward(self, dout):
        return dout * (1 - self.out**2)


class Adam:
    def __init__(self, lr=3e-3, b1=0.9, b2=0.999, eps=1e-8):
        self.lr, self.b1, self.b2, self.eps = lr, b1, b2, eps
        self.m, self.v, self.t = {}, {}, 0

    def update(self, layers):
        self.t += 1
        for i, layer in enumerate(layers):
            for k in layer.params:
                g = layer.grads[k]
                self.m[i, k] = self.b1 * self.m.get((i, k), 0) + (1 - self.b1) * g
                self.v[i, k] = self.b2 * self.v.get((i, k), 0) + (1 - self.b2) * g * g
                m_hat = self.m[i, k] / (1 - self.b1**self.t)
                v_hat = self.v[i, k] / (1 - self.b2**self.t)
                layer.params[k] -= self.lr * m_hat / (np.sqrt(v_hat) + self.eps)


class Net:
    def __init__(self, sizes):
        self.layers = []
        for i in range(len(sizes) - 1):
            self.layers.append(Affine(sizes[i], sizes[i + 1]))
            if i < len(sizes) - 2:
                self.layers.append(Tanh())

    def forward(self, x):
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def backward(self, dout):
        for layer in reversed(self.layers):
            dout = layer.backward(dout)


def mse(pred, y):
    diff = pred - y
    return np.mean(diff**2), 2 * diff / diff.size


X, y = make_friedman1(n_samples=2400, n_features=6, noise=0.5, random_state=0)
y = y[:, None]
X_train, X_val, y_train, y_val = X[:2000], X[2000:], y[:2000], y[2000:]
x_mean, x_std = X_train.mean(0), X_train.std(0)
y_mean, y_std = y_train.mean(), y_train.std()
X_train, X_val = (X_train - x_mean) / x_std, (X_val - x_mean) / x_std
y_train, y_val = (y_train - y_mean) / y_std, (y_val - y_mean) / y_std

net = Net([6, 32, 32, 1])
opt = Adam(lr=3e-3)
for epoch in range(1, 41):
    order = rng.permutation(len(X_train))
    total = 0.0
    for i in range(0, len(order), 50):
        idx = order[i : i + 50]
        loss, dout = mse(net.forward(X_train[idx]), y_train[idx])
        net.backward(dout)
        opt.update(net.layers)
        total += loss * len(idx)
    if epoch == 30:
        opt.lr *= 0.2
    if epoch % 5 == 0:
        val, _ = mse(net.forward(X_val), y_val)
        print(f"epoch {epoch}: train mse {total / len(order):.4f}  val mse {val:.4f}")
