"""A scalar autograd engine and a small network on two moons."""

import math
import random

import numpy as np
from sklearn.datasets import make_moons

np.random.seed(1337)
random.seed(1337)


class Value:
    def __init__(self, data, _children=()):
        self.data = data
        self.grad = 0.0
        self._backward = lambda: None
        self._prev = set(_children)

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other))

        def _backward():
            self.grad += out.grad
            other.grad += out.grad

        out._backward = _backward
        return out

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other))

        def _backward():
            self.grad = other.data * out.grad
            other.grad += self.data * out.grad

        out._backward = _backward
        return out

    def tanh(self):
        t = math.tanh(self.data)
        out = Value(t, (self,))

        def _backward():
            self.grad += (1 - t**2) * out.grad

        out._backward = _backward
        return out

    def relu(self):
        out = Value(self.data if self.data > 0 else 0.0, (self,))

        def _backward():
            self.grad += (out.data > 0) * out.grad

        out._backward = _backward
        return out

    def backward(self):
        topo, visited = [], set()

        def build(v):
            if v not in visited:
                visited.add(v)
                for child in v._prev:
                    build(child)
                topo.append(v)

        build(self)
        self.grad = 1.0
        for v in reversed(topo):
            v._backward()

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + (-other)

    def __rsub__(self, other):
        return (-self) + other

    __radd__ = __add__
    __rmul__ = __mul__


class Neuron:
    def __init__(self, n_in, act=True):
        self.w = [Value(random.uniform(-1, 1) / math.sqrt(n_in)) for _ in range(n_in)]
        self.b = Value(0.0)
        self.act = act

    def __call__(self, x):
        out = sum((wi * xi for wi, xi in zip(self.w, x)), self.b)
        return out.tanh() if self.act else out

    def parameters(self):
        return self.w + [self.b]


class MLP:
    def __init__(self, n_in, sizes):
        dims = [n_in] + sizes
        self.layers = [[Neuron(dims[i], act=i < len(sizes) - 1) for _ in range(dims[i + 1])] for i in range(len(sizes))]

    def __call__(self, x):
        for layer in self.layers:
            x = [neuron(x) for neuron in layer]
        return x[0]

    def parameters(self):
        return [p for layer in self.layers for neuron in layer for p in neuron.parameters()]


def loss_on(model, xs, ys):
    scores = [model(x) for x in xs]
    # hinge loss over a residual sum: (1 - y * s)+
    margins = [(1 - s * float(y)).relu() for s, y in zip(scores, ys)]
    reg = sum((p * p for p in model.parameters()), Value(0.0)) * 1e-4
    loss = sum(margins, Value(0.0)) * (1.0 / len(xs)) + reg
    accuracy = sum((s.data > 0) == (y > 0) for s, y in zip(scores, ys)) / len(ys)
    return loss, accuracy


X, y = make_moons(n_samples=100, noise=0.1)
X = (X - X.mean(axis=0)) / X.std(axis=0)
y = y * 2 - 1
model = MLP(2, [8, 8, 1])
print(len(model.parameters()), "parameters")

for k in range(60):
    pick = np.random.permutation(len(X))[:24]
    loss, accuracy = loss_on(model, X[pick].tolist(), y[pick])
    for p in model.parameters():
        p.grad = 0.0
    loss.backward()
    rate = 0.5 - 0.4 * k / 60
    for p in model.parameters():
        p.data -= rate * p.grad
    if k % 10 == 9:
        print(f"step {k} loss {loss.data:.4f}, accuracy {100 * accuracy:.1f}%")

loss, accuracy = loss_on(model, X.tolist(), y)
print(f"all points: loss {loss.data:.4f}, accuracy {100 * accuracy:.1f}%")
