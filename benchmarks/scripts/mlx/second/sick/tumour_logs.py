"""Breast cancer from logarithms of the measurements, own parameter tree."""
import mlx.core as mx
import numpy as np
from mlx.utils import tree_map
from sklearn.datasets import load_breast_cancer

mx.set_default_device(mx.cpu)
np.seterr(all="ignore")
RATE = 0.1

raw = load_breast_cancer()
rng = np.random.default_rng(7)
order = rng.permutation(len(raw.target))
features = np.log(raw.data[order])
labels = raw.target[order].astype(np.float32)
features = (features - features[:420].mean(axis=0)) / features[:420].std(axis=0)
features = features.astype(np.float32)
x_train, y_train = features[:420], labels[:420]
x_test, y_test = mx.array(features[420:]), mx.array(labels[420:])


def layer(key, n, m):
    return {"w": mx.random.normal((n, m), key=key) * (2.0 / n) ** 0.5, "b": mx.zeros((m,))}


def forward(params, x):
    h = mx.maximum(x @ params["one"]["w"] + params["one"]["b"], 0)
    h = mx.maximum(h @ params["two"]["w"] + params["two"]["b"], 0)
    return (h @ params["three"]["w"] + params["three"]["b"]).squeeze(-1)


def loss(params, x, y):
    z = forward(params, x)
    return mx.mean(mx.logaddexp(mx.array(0.0), z) - y * z)


a, b, c = mx.random.split(mx.random.key(3), 3)
params = {"one": layer(a, 30, 24), "two": layer(b, 24, 12), "three": layer(c, 12, 1)}
step = mx.value_and_grad(loss)

for epoch in range(24):
    perm = rng.permutation(len(x_train))
    values = []
    for i in range(0, len(perm) - 29, 30):
        pick = perm[i : i + 30]
        value, grads = step(params, mx.array(x_train[pick]), mx.array(y_train[pick]))
        params = tree_map(lambda p, g: p - RATE * g, params, grads)
        mx.eval(params, value)
        values.append(value.item())
    hit = mx.mean((forward(params, x_test) > 0) == (y_test > 0.5)).item()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1:2d}: loss {np.mean(values):.4f}  test accuracy {hit:.4f}")
