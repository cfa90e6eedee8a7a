# ruff: noqa
"""A class whose backward changes the weights itself, as in many a blog: no gradient ever leaves it."""

import numpy as np
from sklearn.datasets import load_digits


class MLP:
    def __init__(self, input_size, hidden_size, output_size):
        np.random.seed(42)
        self.weights1 = np.random.randn(input_size, hidden_size) / np.sqrt(input_size)
        self.bias1 = np.zeros(hidden_size)
        self.weights2 = np.random.randn(hidden_size, output_size) / np.sqrt(hidden_size)
        self.bias2 = np.zeros(output_size)

    def sigmoid(self, x):
        return 1 / (1 + np.exp(-x))

    def softmax(self, x):
        e = np.exp(x - np.max(x, axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    def forward(self, x):
        self.hidden = self.sigmoid(np.dot(x, self.weights1) + self.bias1)
        self.output = self.softmax(np.dot(self.hidden, self.weights2) + self.bias2)
        return self.output

    def backward(self, x, y, learning_rate):
        m = x.shape[0]
        error = (self.output - y) / m
        hidden_error = np.dot(error, self.weights2.T)
        hidden_delta = hidden_error * self.hidden * (1 - self.hidden)
        self.weights2 -= learning_rate * np.dot(self.hidden.T, error)
        self.bias2 -= learning_rate * np.sum(error, axis=0)
        self.weights1 -= learning_rate * np.dot(x.T, hidden_delta)
        self.bias1 -= learning_rate * np.sum(hidden_delta, axis=0)

    def train(self, X, Y, epochs, learning_rate, batch_size=32):
        for epoch in range(epochs):
            order = np.random.permutation(len(X))
            for start in range(0, len(X), batch_size):
                rows = order[start : start + batch_size]
                output = self.forward(X[rows])
                loss = cross_entropy(output, Y[rows])
                self.backward(X[rows], Y[rows], learning_rate)


def cross_entropy(output, y):
    return -np.mean(np.sum(y * np.log(output + 1e-12), axis=1))


def load():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, np.eye(10)[y]


def examined():
    return {"model": MLP(64, 32, 10), "train": load(), "loss": cross_entropy, "optimizer": 1.0}


def watched(watch):
    X, Y = load()
    net = MLP(64, 32, 10)
    with watch(net) as w:
        net.train(X, Y, epochs=6, learning_rate=1.0)
    return w
