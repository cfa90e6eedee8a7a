# ruff: noqa
"""One hidden layer, as in the notebook of a first course: everything in one class."""

import numpy as np
from sklearn.datasets import load_digits


class NeuralNetwork:
    def __init__(self, n_in, n_hidden, n_out, seed=0):
        rng = np.random.RandomState(seed)
        self.W1 = rng.randn(n_in, n_hidden) * np.sqrt(1.0 / n_in)
        self.b1 = np.zeros((1, n_hidden))
        self.W2 = rng.randn(n_hidden, n_out) * np.sqrt(1.0 / n_hidden)
        self.b2 = np.zeros((1, n_out))

    def parameters(self):
        return [self.W1, self.b1, self.W2, self.b2]

    def forward(self, X):
        self.X = X
        self.z1 = np.dot(X, self.W1) + self.b1
        self.a1 = np.tanh(self.z1)
        self.z2 = np.dot(self.a1, self.W2) + self.b2
        exp = np.exp(self.z2 - np.max(self.z2, axis=1, keepdims=True))
        self.probs = exp / np.sum(exp, axis=1, keepdims=True)
        return self.probs

    def compute_loss(self, probs, y):
        m = y.shape[0]
        return -np.sum(np.log(probs[range(m), y] + 1e-12)) / m

    def backward(self, y):
        m = y.shape[0]
        delta3 = self.probs.copy()
        delta3[range(m), y] -= 1
        delta3 /= m
        dW2 = np.dot(self.a1.T, delta3)
        db2 = np.sum(delta3, axis=0, keepdims=True)
        delta2 = np.dot(delta3, self.W2.T) * (1 - np.power(self.a1, 2))
        dW1 = np.dot(self.X.T, delta2)
        db1 = np.sum(delta2, axis=0, keepdims=True)
        return [dW1, db1, dW2, db2]

    def update(self, grads, lr):
        for p, g in zip(self.parameters(), grads):
            p -= lr * g


def load():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


def train(net, X, y, epochs=6, batch_size=32, lr=0.5):
    rng = np.random.RandomState(1)
    for epoch in range(epochs):
        order = rng.permutation(len(X))
        for start in range(0, len(X), batch_size):
            idx = order[start : start + batch_size]
            probs = net.forward(X[idx])
            loss = net.compute_loss(probs, y[idx])
            grads = net.backward(y[idx])
            net.update(grads, lr)


def examined():
    return {"model": NeuralNetwork(64, 32, 10), "train": load(), "optimizer": 0.5}


def watched(watch):
    X, y = load()
    net = NeuralNetwork(64, 32, 10)
    with watch(net, 0.5) as w:
        train(net, X, y)
    return w
