"""Weights in a dict and functions with a cache, examined and watched as they stand.

python examples/numpy/functions.py          trains under watch
sleuth examine examples/numpy/functions.py:training
sleuth examine examples/numpy/functions.py:sick      names: gradient-wrong
"""

import numpy as np
from sklearn.datasets import load_digits

import sleuth


def make_weights(hidden: int = 32) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "W1": rng.normal(0, np.sqrt(2 / 64), (64, hidden)),
        "b1": np.zeros(hidden),
        "W2": rng.normal(0, np.sqrt(1 / hidden), (hidden, 10)),
        "b2": np.zeros(10),
    }


def forward(params, x):
    z1 = x @ params["W1"] + params["b1"]
    a1 = np.tanh(z1)
    return a1 @ params["W2"] + params["b2"], (x, a1)


def backward(params, cache, dout):
    x, a1 = cache
    dz1 = (dout @ params["W2"].T) * (1 - a1**2)
    return {"W2": a1.T @ dout, "b2": dout.sum(axis=0), "W1": x.T @ dz1, "b1": dz1.sum(axis=0)}


def backward_wrong(params, cache, dout):
    x, a1 = cache
    dz1 = dout @ params["W2"].T  # the derivative of tanh is forgotten
    return {"W2": a1.T @ dout, "b2": dout.sum(axis=0), "W1": x.T @ dz1, "b1": dz1.sum(axis=0)}


def update(params, grads, lr):
    for name, gradient in grads.items():
        params[name] -= lr * gradient


def cross_entropy(scores, y):
    scores = scores - scores.max(axis=1, keepdims=True)
    log_p = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return -log_p[np.arange(len(y)), y].mean(), (np.exp(log_p) - np.eye(10)[y]) / len(y)


def data():
    images, labels = load_digits(return_X_y=True)
    return images / 8 - 1, labels


def training(backward=backward):
    model = sleuth.ByHand(make_weights(), forward=forward, backward=backward, update=update)
    return {"model": model, "train": data(), "loss": cross_entropy, "optimizer": 0.2}


def sick():
    return training(backward_wrong)


if __name__ == "__main__":
    x, y = data()
    params, rng = make_weights(), np.random.default_rng(1)
    net = sleuth.ByHand(params, forward=forward, backward=backward, update=update)
    with sleuth.watch(net, 0.2) as w:
        for _ in range(600):
            rows = rng.integers(0, len(x), 32)
            scores, cache = forward(params, x[rows])
            _, dout = cross_entropy(scores, y[rows])
            update(params, backward(params, cache, dout), 0.2)
    w.report().show()
