# ruff: noqa
"""One function that does a whole training step on a dict of weights."""

import numpy as np
import sleuth
from sklearn.datasets import load_digits


def init(rng, d=64, h=24, c=10):
    return dict(
        W1=rng.normal(0, 1 / np.sqrt(d), size=(d, h)),
        b1=np.zeros(h),
        W2=rng.normal(0, 1 / np.sqrt(h), size=(h, h)),
        b2=np.zeros(h),
        W3=rng.normal(0, 1 / np.sqrt(h), size=(h, c)),
        b3=np.zeros(c),
    )


def softmax(s):
    s = s - s.max(axis=1, keepdims=True)
    e = np.exp(s)
    return e / e.sum(axis=1, keepdims=True)


def train_step(params, x, y, lr=0.3):
    n = len(x)
    # forward
    h1 = np.tanh(x @ params["W1"] + params["b1"])
    h2 = np.tanh(h1 @ params["W2"] + params["b2"])
    p = softmax(h2 @ params["W3"] + params["b3"])
    loss = -np.log(p[np.arange(n), y] + 1e-9).mean()
    # backward
    d3 = (p - np.eye(p.shape[1])[y]) / n
    gW3 = h2.T @ d3
    gb3 = d3.sum(0)
    d2 = (d3 @ params["W3"].T) * (1 - h2 * h2)
    gW2 = h1.T @ d2
    gb2 = d2.sum(0)
    d1 = (d2 @ params["W2"].T) * (1 - h1 * h1)
    gW1 = x.T @ d1
    gb1 = d1.sum(0)
    # update
    params["W1"] -= lr * gW1
    params["b1"] -= lr * gb1
    params["W2"] -= lr * gW2
    params["b2"] -= lr * gb2
    params["W3"] -= lr * gW3
    params["b3"] -= lr * gb3
    return loss


def load():
    images, labels = load_digits(return_X_y=True)
    return (images - 8.0) / 8.0, labels


def examined():
    return {"model": init(np.random.default_rng(0)), "train": load(), "step": train_step}


def watched(watch):
    x, y = load()
    rng = np.random.default_rng(0)
    params = init(rng)
    with watch(sleuth.ByHand(params, step=train_step)) as w:
        for epoch in range(5):
            idx = rng.permutation(len(x))
            for batch in np.array_split(idx, 50):
                train_step(params, x[batch], y[batch])
    return w
