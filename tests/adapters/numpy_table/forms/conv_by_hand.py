# ruff: noqa
"""A convolution by loops, pooling by reshaping, and a dense layer, each with a backward that takes the rate."""

import numpy as np
from sklearn.datasets import load_digits


class Conv3x3:
    def __init__(self, num_filters):
        self.num_filters = num_filters
        self.filters = np.random.RandomState(0).randn(num_filters, 3, 3) / 3

    def forward(self, input):
        self.last_input = input
        n, h, w = input.shape
        output = np.zeros((n, h - 2, w - 2, self.num_filters))
        for i in range(h - 2):
            for j in range(w - 2):
                region = input[:, i : i + 3, j : j + 3]
                output[:, i, j] = np.tensordot(region, self.filters, axes=([1, 2], [1, 2]))
        return output

    def backprop(self, d_out, learn_rate):
        d_filters = np.zeros(self.filters.shape)
        n, h, w = self.last_input.shape
        for i in range(h - 2):
            for j in range(w - 2):
                region = self.last_input[:, i : i + 3, j : j + 3]
                d_filters += np.tensordot(d_out[:, i, j], region, axes=([0], [0]))
        self.filters -= learn_rate * d_filters


class Relu:
    def forward(self, input):
        self.mask = input > 0
        return input * self.mask

    def backprop(self, d_out, learn_rate):
        return d_out * self.mask


class Flatten:
    def forward(self, input):
        self.shape = input.shape
        return input.reshape(len(input), -1)

    def backprop(self, d_out, learn_rate):
        return d_out.reshape(self.shape)


class Dense:
    def __init__(self, input_len, nodes):
        self.weights = np.random.RandomState(1).randn(input_len, nodes) / np.sqrt(input_len)
        self.biases = np.zeros(nodes)

    def forward(self, input):
        self.last_input = input
        return np.dot(input, self.weights) + self.biases

    def backprop(self, d_out, learn_rate):
        d_input = np.dot(d_out, self.weights.T)
        d_weights = np.dot(self.last_input.T, d_out)
        d_biases = d_out.sum(axis=0)
        self.weights -= learn_rate * d_weights
        self.biases -= learn_rate * d_biases
        return d_input


class CNN:
    def __init__(self):
        self.conv = Conv3x3(4)
        self.relu = Relu()
        self.flatten = Flatten()
        self.dense = Dense(6 * 6 * 4, 10)

    def forward(self, image):
        out = self.conv.forward(image)
        out = self.relu.forward(out)
        out = self.flatten.forward(out)
        return self.dense.forward(out)

    def backward(self, gradient, learn_rate):
        gradient = self.dense.backprop(gradient, learn_rate)
        gradient = self.flatten.backprop(gradient, learn_rate)
        gradient = self.relu.backprop(gradient, learn_rate)
        self.conv.backprop(gradient, learn_rate)


def softmax(x):
    exp = np.exp(x - np.max(x, axis=1, keepdims=True))
    return exp / np.sum(exp, axis=1, keepdims=True)


def cross_entropy(logits, label):
    p = softmax(logits)
    loss = -np.mean(np.log(p[np.arange(len(label)), label]))
    p[np.arange(len(label)), label] -= 1
    return loss, p / len(label)


def load():
    X, y = load_digits(return_X_y=True)
    return X.reshape(-1, 8, 8) / 16.0 - 0.5, y


def train(cnn, X, y, epochs=4, batch=32, lr=0.1):
    rng = np.random.RandomState(3)
    for epoch in range(epochs):
        permutation = rng.permutation(len(X))
        for i in range(0, len(X), batch):
            rows = permutation[i : i + batch]
            logits = cnn.forward(X[rows])
            loss, gradient = cross_entropy(logits, y[rows])
            cnn.backward(gradient, lr)


def examined():
    return {"model": CNN(), "train": load(), "loss": cross_entropy, "optimizer": 0.1}


def watched(watch):
    X, y = load()
    cnn = CNN()
    with watch(cnn) as w:
        train(cnn, X, y)
    return w
