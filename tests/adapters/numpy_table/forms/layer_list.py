# ruff: noqa
"""A small library of layers, put into a list, with a loop over them."""

import numpy as np
from sklearn.datasets import load_digits


class Linear:
    def __init__(self, fan_in, fan_out, rng):
        self.weights = rng.standard_normal((fan_in, fan_out)) * np.sqrt(2 / fan_in)
        self.bias = np.zeros(fan_out)
        self.dweights = np.zeros_like(self.weights)
        self.dbias = np.zeros_like(self.bias)

    def forward(self, inputs):
        self.inputs = inputs
        return inputs @ self.weights + self.bias

    def backward(self, dvalues):
        self.dweights = self.inputs.T @ dvalues
        self.dbias = np.sum(dvalues, axis=0)
        return dvalues @ self.weights.T


class ReLU:
    def forward(self, inputs):
        self.inputs = inputs
        return np.maximum(0, inputs)

    def backward(self, dvalues):
        dinputs = dvalues.copy()
        dinputs[self.inputs <= 0] = 0
        return dinputs


class SoftmaxCrossEntropy:
    def forward(self, logits, y_true):
        shifted = logits - logits.max(axis=1, keepdims=True)
        exps = np.exp(shifted)
        self.p = exps / exps.sum(axis=1, keepdims=True)
        self.y_true = y_true
        return -np.log(self.p[np.arange(len(y_true)), y_true]).mean()

    def backward(self):
        grad = self.p.copy()
        grad[np.arange(len(self.y_true)), self.y_true] -= 1
        grad = grad / len(self.y_true)
        return grad


class SGD:
    def __init__(self, layers, learning_rate):
        self.layers = layers
        self.learning_rate = learning_rate

    def step(self):
        for layer in self.layers:
            if hasattr(layer, "weights"):
                layer.weights -= self.learning_rate * layer.dweights
                layer.bias -= self.learning_rate * layer.dbias


def load():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


def make():
    rng = np.random.default_rng(0)
    return [Linear(64, 24, rng), ReLU(), Linear(24, 24, rng), ReLU(), Linear(24, 10, rng)]


def train(layers, loss_fn, optimizer, X, y, epochs=5, batch=32):
    rng = np.random.default_rng(1)
    for epoch in range(epochs):
        idx = rng.permutation(len(X))
        for i in range(0, len(X), batch):
            out = X[idx[i : i + batch]]
            for layer in layers:
                out = layer.forward(out)
            loss = loss_fn.forward(out, y[idx[i : i + batch]])
            grad = loss_fn.backward()
            for layer in reversed(layers):
                grad = layer.backward(grad)
            optimizer.step()


def examined():
    layers = make()
    return {"model": layers, "train": load(), "loss": SoftmaxCrossEntropy(), "optimizer": SGD(layers, 0.2)}


def watched(watch):
    X, y = load()
    layers = make()
    loss_fn = SoftmaxCrossEntropy()
    optimizer = SGD(layers, 0.2)
    with watch(layers, optimizer) as w:
        train(layers, loss_fn, optimizer, X, y)
    return w
