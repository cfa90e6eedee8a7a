"""Fit a damped wave with a plain parameter tree and a hand-written Adam."""
import mlx.core as mx
import numpy as np
from mlx.utils import tree_flatten, tree_map

mx.set_default_device(mx.cpu)
LR = 0.2
B1, B2, EPS = 0.9, 0.99, 1e-8
WIDTH = 48

rng = np.random.default_rng(23)
t = rng.uniform(-1, 1, size=(1500, 1)).astype(np.float32)
u = (np.exp(-0.8 * (t + 1)) * np.sin(7 * t)).astype(np.float32)
u = (u - u.mean()) / u.std() + rng.normal(0, 0.02, size=u.shape).astype(np.float32)
t = t * 1.7
t_train, u_train = t[:1200], u[:1200]
t_test, u_test = mx.array(t[1200:]), mx.array(u[1200:])


def init(key, sizes):
    keys = mx.random.split(key, len(sizes) - 1)
    return [
        {"weight": mx.random.normal((a, b), key=k) / a**0.5, "bias": mx.random.uniform(-1, 1, (b,), key=k)}
        for k, a, b in zip(keys, sizes[:-1], sizes[1:])
    ]


def predict(params, x):
    for p in params[:-1]:
        x = mx.tanh(x @ p["weight"] + p["bias"])
    return x @ params[-1]["weight"] + params[-1]["bias"]


def mse(params, x, y):
    return mx.mean(mx.square(predict(params, x) - y))


params = init(mx.random.key(23), [1, WIDTH, WIDTH, 1])
first = tree_map(mx.zeros_like, params)
second = tree_map(mx.zeros_like, params)
print("parameters:", sum(v.size for _, v in tree_flatten(params)))
value_and_grad = mx.value_and_grad(mse)


@mx.compile
def update(params, first, second, x, y, n):
    loss, grads = value_and_grad(params, x, y)
    first = tree_map(lambda m, g: B1 * m + (1 - B1) * g, first, grads)
    second = tree_map(lambda v, g: B2 * v + (1 - B2) * g * g, second, grads)
    c1, c2 = 1 - B1**n, 1 - B2**n
    params = tree_map(lambda p, m, v: p - LR * (m / c1) / (mx.sqrt(v / c2) + EPS), params, first, second)
    return params, first, second, loss


history = []
for step in range(1200):
    pick = rng.integers(0, 1200, size=60)
    batch = mx.array(t_train[pick]), mx.array(u_train[pick])
    params, first, second, loss = update(params, first, second, *batch, mx.array(step + 1.0))
    mx.eval(params, first, second, loss)
    history.append(loss.item())
    if (step + 1) % 100 == 0:
        print(f"{step + 1:5d}  train {np.mean(history[-100:]):.4f}  test {mse(params, t_test, u_test).item():.4f}")
