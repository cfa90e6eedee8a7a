"""A plain training in MLX, as its documentation shows it. Words: high (rate), idle (a layer), head (frozen), compiled."""

import hashlib
import sys
from functools import partial

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from mlx.utils import tree_flatten
from sklearn.datasets import load_digits

WORDS = sys.argv[1:]
mx.random.seed(0)
x, y = load_digits(return_X_y=True)
x = (x / 16).astype(np.float32)


class Digits(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(64, 64)
        self.last = nn.Linear(64, 10)
        if "idle" in WORDS:
            self.idle = nn.Linear(64, 64)

    def __call__(self, images):
        return self.last(mx.maximum(self.first(images), 0))


def loss_of(model, images, labels):
    return nn.losses.cross_entropy(model(images), labels, reduction="mean")


model = Digits()
optimizer = optim.Adam(learning_rate=1.0 if "high" in WORDS else 3e-3)
if "head" in WORDS:
    model.last.freeze()
loss_and_gradient = nn.value_and_grad(model, loss_of)


def step(images, labels):
    loss, gradients = loss_and_gradient(model, images, labels)
    optimizer.update(model, gradients)
    return loss


if "compiled" in WORDS:
    state = [model.state, optimizer.state]
    step = partial(mx.compile, inputs=state, outputs=state)(step)

rng = np.random.default_rng(0)
for epoch in range(4):
    order = rng.permutation(len(x))
    for start in range(0, len(x), 32):
        rows = order[start : start + 32]
        loss = step(mx.array(x[rows]), mx.array(y[rows]))
        mx.eval(model.parameters(), optimizer.state)
    print(epoch, f"{loss.item():.4f}")
weights = b"".join(np.array(a).tobytes() for _, a in tree_flatten([model.parameters(), optimizer.state]))
print(hashlib.md5(weights).hexdigest(), np.array(mx.random.state[0]))
