"""Robot-arm regression. SGD with Nesterov momentum by hand, a scan over the batches of an epoch, loss summed over the batch."""
import os
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

BATCH = 100
LR = 1e-3
MU = 0.9


def arm(angles):
    lengths = np.array([1.0, 0.7, 0.4])
    total = np.cumsum(angles, axis=1)
    return np.stack([(lengths * np.cos(total)).sum(1), (lengths * np.sin(total)).sum(1)], axis=1)


rng = np.random.default_rng(31)
angles = rng.uniform(-1.2, 1.2, size=(4500, 3))
tips = arm(angles)
tips = (tips - tips.mean(0)) / tips.std(0)
x_train, y_train = jnp.asarray(angles[:4000], jnp.float32), jnp.asarray(tips[:4000], jnp.float32)
x_val, y_val = jnp.asarray(angles[4000:], jnp.float32), jnp.asarray(tips[4000:], jnp.float32)


def init(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [(jax.random.normal(k, (a, b)) / jnp.sqrt(a), jnp.zeros(b)) for k, a, b in zip(keys, sizes, sizes[1:])]


def net(params, x):
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def loss(params, x, y):
    return 0.5 * jnp.sum((net(params, x) - y) ** 2)


def sgd(carry, batch):
    params, velocity = carry
    value, grads = jax.value_and_grad(loss)(params, *batch)
    velocity = jax.tree.map(lambda v, g: MU * v + g, velocity, grads)
    params = jax.tree.map(lambda p, v, g: p - LR * (MU * v + g), params, velocity, grads)
    return (params, velocity), value


@jax.jit
def epoch(params, velocity, key):
    order = jax.random.permutation(key, len(x_train)).reshape(-1, BATCH)
    (params, velocity), values = lax.scan(sgd, (params, velocity), (x_train[order], y_train[order]))
    return params, velocity, values.mean()


@jax.jit
def rmse(params, x, y):
    return jnp.sqrt(jnp.mean((net(params, x) - y) ** 2))


key = jax.random.PRNGKey(9)
key, sub = jax.random.split(key)
params = init(sub, [3, 40, 40, 2])
velocity = jax.tree.map(jnp.zeros_like, params)
for n in range(25):
    key, sub = jax.random.split(key)
    params, velocity, value = epoch(params, velocity, sub)
    if n % 4 == 0:
        print(f"epoch {n:3d}  batch loss {float(value):8.4f}  val rmse {float(rmse(params, x_val, y_val)):.4f}")
