# ruff: noqa
"""A little framework: modules with params and grads that add up, zero_grad, and an optimiser over them."""

import numpy as np
from sklearn.datasets import load_digits


class Parameter:
    def __init__(self, data):
        self.data = data
        self.grad = np.zeros_like(data)


class Module:
    def parameters(self):
        found = []
        for value in self.__dict__.values():
            if isinstance(value, Parameter):
                found.append(value)
            elif isinstance(value, Module):
                found.extend(value.parameters())
            elif isinstance(value, list):
                for item in value:
                    if isinstance(item, Module):
                        found.extend(item.parameters())
        return found

    def zero_grad(self):
        for p in self.parameters():
            p.grad = np.zeros_like(p.data)


class Linear(Module):
    def __init__(self, i, o, rng):
        self.w = Parameter(rng.uniform(-1, 1, (i, o)) * np.sqrt(3 / i))
        self.b = Parameter(np.zeros(o))

    def forward(self, x):
        self.x = x
        return x @ self.w.data + self.b.data

    def backward(self, d):
        self.w.grad += self.x.T @ d
        self.b.grad += d.sum(axis=0)
        return d @ self.w.data.T


class Tanh(Module):
    def forward(self, x):
        self.y = np.tanh(x)
        return self.y

    def backward(self, d):
        return d * (1 - self.y**2)


class Sequential(Module):
    def __init__(self, *modules):
        self.modules = list(modules)

    def forward(self, x):
        for m in self.modules:
            x = m.forward(x)
        return x

    def backward(self, d):
        for m in reversed(self.modules):
            d = m.backward(d)
        return d


class Optimizer:
    def __init__(self, params, lr):
        self.params = params
        self.lr = lr

    def step(self):
        for p in self.params:
            p.data -= self.lr * p.grad


class CrossEntropyLoss:
    def __call__(self, scores, labels):
        z = scores - scores.max(axis=-1, keepdims=True)
        logp = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
        self.probs, self.labels = np.exp(logp), labels
        return -logp[range(len(labels)), labels].mean()

    def backward(self):
        d = self.probs.copy()
        d[range(len(d)), self.labels] -= 1.0
        return d / len(d)


def load():
    X, y = load_digits(return_X_y=True)
    return (X / 16.0).astype(np.float32), y


def make():
    rng = np.random.default_rng(7)
    return Sequential(Linear(64, 20, rng), Tanh(), Linear(20, 20, rng), Tanh(), Linear(20, 10, rng))


def train(model, criterion, optimizer, X, y, epochs=5):
    rng = np.random.default_rng(7)
    for epoch in range(epochs):
        for rows in np.array_split(rng.permutation(len(X)), 56):
            model.zero_grad()
            scores = model.forward(X[rows])
            loss = criterion(scores, y[rows])
            model.backward(criterion.backward())
            optimizer.step()


def examined():
    model = make()
    return {"model": model, "train": load(), "loss": CrossEntropyLoss(), "optimizer": Optimizer(model.parameters(), 0.3)}


def watched(watch):
    X, y = load()
    model = make()
    criterion = CrossEntropyLoss()
    optimizer = Optimizer(model.parameters(), 0.3)
    with watch(model, optimizer) as w:
        train(model, criterion, optimizer, X, y)
    return w
