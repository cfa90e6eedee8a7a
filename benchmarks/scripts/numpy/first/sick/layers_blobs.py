import numpy as np
from sklearn.datasets import make_blobs

np.random.seed(8)


class Linear:
    def __init__(self, n_in, n_out):
        self.W = np.random.randn(n_in, n_out) * np.sqrt(2.0 / n_in)
        self.b = np.zeros(n_out)

    def forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def backward(self, grad):
        self.dW = self.x.T @ grad
        self.db = grad.sum(axis=0)
        return grad @ self.W.T

    def params(self):
        return [("W", self.W, self.dW), ("b", self.b, self.db)]


class ReLU:
    def forward(self, x):
        self.mask = x > 0
        return x * self.mask

    def backward(self, grad):
        return grad * self.mask

    def params(self):
        return []


class SoftmaxCrossEntropy:
    def forward(self, z, y):
        z = z - z.max(axis=1, keepdims=True)
        e = np.exp(z)
        self.p = e / e.sum(axis=1, keepdims=True)
        self.y = y
        return -np.log(self.p[np.arange(len(y)), y]).mean()

    def backward(self):
        grad = self.p.copy()
        grad[np.arange(len(self.y)), self.y] -= 1
        return grad / len(self.y)


class Network:
    def __init__(self, *layers):
        self.layers = layers

    def forward(self, x):
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def backward(self, grad):
        for layer in reversed(self.layers):
            grad = layer.backward(grad)


class Momentum:
    def __init__(self, lr, beta=0.9):
        self.lr = lr
        self.beta = beta
        self.velocity = {}

    def update(self, network):
        for i, layer in enumerate(network.layers):
            for name, value, grad in layer.params():
                v = self.velocity.get((i, name), 0.0)
                v = self.beta * v - self.lr * grad
                self.velocity[i, name] = v
                value += v


def shuffle(X, y):
    return np.random.permutation(X), np.random.permutation(y)


def accuracy(network, X, y):
    return (network.forward(X).argmax(axis=1) == y).mean()


X, y = make_blobs(n_samples=2400, n_features=6, centers=9, cluster_std=2.0, random_state=8)
y = y % 3
X = (X - X.mean(axis=0)) / X.std(axis=0)
X_train, y_train = X[:1800], y[:1800]
X_test, y_test = X[1800:], y[1800:]

network = Network(Linear(6, 32), ReLU(), Linear(32, 32), ReLU(), Linear(32, 3))
criterion = SoftmaxCrossEntropy()
optimizer = Momentum(lr=0.03)

for epoch in range(1, 41):
    xs, ys = shuffle(X_train, y_train)
    losses = []
    for start in range(0, len(xs), 60):
        xb, yb = xs[start : start + 60], ys[start : start + 60]
        losses.append(criterion.forward(network.forward(xb), yb))
        network.backward(criterion.backward())
        optimizer.update(network)
    if epoch % 5 == 0:
        print(f"epoch {epoch}: loss {np.mean(losses):.4f}  test accuracy {accuracy(network, X_test, y_test):.3f}")
