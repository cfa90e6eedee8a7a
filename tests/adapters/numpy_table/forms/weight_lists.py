# ruff: noqa
"""Lists of weights and biases and a loop backwards over them, in the manner of the free book on neural networks."""

import numpy as np
from sklearn.datasets import load_digits


def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-z))


def sigmoid_prime(z):
    return sigmoid(z) * (1 - sigmoid(z))


class Network:
    def __init__(self, sizes):
        rng = np.random.default_rng(1)
        self.num_layers = len(sizes)
        self.sizes = sizes
        self.biases = [np.zeros(n) for n in sizes[1:]]
        self.weights = [rng.standard_normal((m, n)) / np.sqrt(m) for m, n in zip(sizes[:-1], sizes[1:])]

    def parameters(self):
        return self.weights + self.biases

    def forward(self, a):
        self.zs = []
        self.activations = [a]
        for w, b in zip(self.weights, self.biases):
            z = a @ w + b
            a = sigmoid(z)
            self.zs.append(z)
            self.activations.append(a)
        return a

    def backward(self, y):
        n = len(y)
        nabla_w = [np.zeros(w.shape) for w in self.weights]
        nabla_b = [np.zeros(b.shape) for b in self.biases]
        delta = (self.activations[-1] - y) / n
        nabla_b[-1] = delta.sum(axis=0)
        nabla_w[-1] = self.activations[-2].T @ delta
        for l in range(2, self.num_layers):
            delta = (delta @ self.weights[-l + 1].T) * sigmoid_prime(self.zs[-l])
            nabla_b[-l] = delta.sum(axis=0)
            nabla_w[-l] = self.activations[-l - 1].T @ delta
        return nabla_w + nabla_b

    def update(self, grads, eta):
        k = len(self.weights)
        self.weights = [w - eta * g for w, g in zip(self.weights, grads[:k])]
        self.biases = [b - eta * g for b, g in zip(self.biases, grads[k:])]


def cross_entropy_cost(a, y):
    return np.sum(-y * np.log(a + 1e-12) - (1 - y) * np.log(1 - a + 1e-12)) / len(y)


def load():
    X, labels = load_digits(return_X_y=True)
    return X / 16.0, np.eye(10)[labels]


def SGD(net, X, Y, epochs, mini_batch_size, eta):
    rng = np.random.default_rng(2)
    for j in range(epochs):
        shuffled = rng.permutation(len(X))
        for k in range(0, len(X), mini_batch_size):
            rows = shuffled[k : k + mini_batch_size]
            a = net.forward(X[rows])
            cost = cross_entropy_cost(a, Y[rows])
            net.update(net.backward(Y[rows]), eta)


def examined():
    return {"model": Network([64, 24, 24, 10]), "train": load(), "loss": cross_entropy_cost, "optimizer": 1.0}


def watched(watch):
    X, Y = load()
    net = Network([64, 24, 24, 10])
    with watch(net, 1.0) as w:
        SGD(net, X, Y, 6, 32, 1.0)
    return w
