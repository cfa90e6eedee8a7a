"""Learn the pendulum's next state from the current one. Summed squared error, momentum by hand, no modules."""
import mlx.core as mx
import numpy as np
from mlx.utils import tree_map

mx.set_default_device(mx.cpu)
rng = np.random.default_rng(29)


def simulate(state, dt=0.05, steps=8):
    angle, speed = state[:, 0].copy(), state[:, 1].copy()
    for _ in range(steps):
        speed -= dt * (np.sin(angle) * 4.0 + 0.2 * speed)
        angle += dt * speed
    return np.stack([angle, speed], axis=1)


start = np.stack([rng.uniform(-2.5, 2.5, 3000), rng.uniform(-2.0, 2.0, 3000)], axis=1)
end = simulate(start)
x = ((start - start.mean(0)) / start.std(0)).astype(np.float32)
y = ((end - end.mean(0)) / end.std(0)).astype(np.float32)
x_val, y_val = mx.array(x[2600:]), mx.array(y[2600:])


def init(sizes, key):
    params = {}
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        key, sub = mx.random.split(key)
        params[f"layer{i}"] = {"w": mx.random.normal((a, b), key=sub) * a**-0.5, "b": mx.zeros((b,))}
    return params


def model(params, x):
    last = len(params) - 1
    for i in range(last + 1):
        p = params[f"layer{i}"]
        x = x @ p["w"] + p["b"]
        if i < last:
            x = mx.tanh(x)
    return x


def sse(params, x, y):
    return 0.5 * mx.sum((model(params, x) - y) ** 2)


params = init([2, 32, 32, 2], mx.random.key(29))
velocity = tree_map(lambda p: mx.zeros(p.shape), params)
fn = mx.value_and_grad(sse)
rate, mu = 1e-3, 0.9
for epoch in range(16):
    seen = 0.0
    for idx in np.split(rng.permutation(2600), 52):
        value, grads = fn(params, mx.array(x[idx]), mx.array(y[idx]))
        velocity = tree_map(lambda v, g: mu * v - rate * g, velocity, grads)
        params = tree_map(lambda p, v: p + v, params, velocity)
        mx.eval(params, velocity)
        seen += value.item()
    rmse = mx.sqrt(mx.mean((model(params, x_val) - y_val) ** 2)).item()
    print(f"epoch {epoch + 1:2d}: batch loss {seen / 52:.4f}  validation rmse {rmse:.4f}")
