"""A network of plain arrays in MLX: no module, no optimiser. Words: hole (in the data), high (rate)."""

import hashlib
import sys

import mlx.core as mx
import numpy as np
from mlx.utils import tree_flatten, tree_map

WORDS = sys.argv[1:]
RATE = 3.0 if "high" in WORDS else 0.05
rng = np.random.default_rng(0)
x = rng.normal(size=(640, 6)).astype(np.float32)
y = (np.sin(x[:, :1]) + 0.5 * x[:, 1:2] * x[:, 2:3]).astype(np.float32)
if "hole" in WORDS:
    x[77, 4] = np.nan


def forward(weights, inputs):
    hidden = mx.tanh(inputs @ weights["hidden"]["w"] + weights["hidden"]["b"])
    return hidden @ weights["out"]["w"] + weights["out"]["b"]


def loss_of(weights, inputs, wanted):
    return mx.mean(mx.square(forward(weights, inputs) - wanted))


one, two = mx.random.split(mx.random.key(4))
weights = {
    "hidden": {"w": mx.random.normal((6, 32), key=one) * 6**-0.5, "b": mx.zeros((32,))},
    "out": {"w": mx.random.normal((32, 1), key=two) * 32**-0.5, "b": mx.zeros((1,))},
}
loss_and_gradient = mx.value_and_grad(loss_of)
for epoch in range(8):
    order = rng.permutation(len(x))
    for start in range(0, len(x), 32):
        rows = order[start : start + 32]
        loss, gradients = loss_and_gradient(weights, mx.array(x[rows]), mx.array(y[rows]))
        weights = tree_map(lambda w, g: w - RATE * g, weights, gradients)
        mx.eval(weights, loss)
    print(epoch, f"{loss.item():.4f}")
print(hashlib.md5(b"".join(np.array(a).tobytes() for _, a in tree_flatten(weights))).hexdigest())
