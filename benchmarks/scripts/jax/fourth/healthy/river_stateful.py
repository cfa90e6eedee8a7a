"""One long series, read in order; the hidden state is handed on from window to window, its gradient is not."""
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

LANES, WINDOW, HIDDEN, EPOCHS = 16, 25, 24, 30


class Cell(NamedTuple):
    wx: jax.Array
    wh: jax.Array
    b: jax.Array
    wo: jax.Array
    bo: jax.Array


def new_cell(key):
    k1, k2, k3 = jax.random.split(key, 3)
    return Cell(
        jax.random.normal(k1, (1, 3 * HIDDEN)) * 0.5,
        jax.nn.initializers.orthogonal()(k2, (HIDDEN, 3 * HIDDEN)),
        jnp.zeros(3 * HIDDEN),
        jax.random.normal(k3, (HIDDEN, 1)) / HIDDEN**0.5,
        jnp.zeros(1),
    )


def gru(cell, h, x):
    xr, xz, xn = jnp.split(x @ cell.wx + cell.b, 3, axis=-1)
    hr, hz, hn = jnp.split(h @ cell.wh, 3, axis=-1)
    z = jax.nn.sigmoid(xz + hz)
    h = z * h + (1 - z) * jnp.tanh(xn + jax.nn.sigmoid(xr + hr) * hn)
    return h, h @ cell.wo + cell.bo


def loss_fn(cell, h, window):
    h, ahead = jax.lax.scan(lambda h, x: gru(cell, h, x), h, window[:-1])
    return jnp.mean((ahead - window[1:]) ** 2), h


tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(4e-3))


@jax.jit
def step(cell, state, h, window):
    (loss, h), grads = jax.value_and_grad(loss_fn, has_aux=True)(cell, h, window)
    updates, state = tx.update(grads, state)
    return optax.apply_updates(cell, updates), state, jax.lax.stop_gradient(h), loss


def river(n, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    level, wet = np.zeros(n), 0.0
    for i in range(1, n):
        wet = 0.95 * wet + (rng.gamma(1.0, 1.0) if rng.random() < 0.05 else 0.0)
        level[i] = 0.8 * level[i - 1] + 0.1 * wet + 0.15 * np.sin(2 * np.pi * t[i] / 40) + rng.normal(0, 0.05)
    return level


def lanes(series):
    return series.reshape(LANES, -1).T[:, :, None].astype(np.float32)  # time, lane, 1


series = river(16 * 1000, 6)
cut = 16 * 800
mean, std = series[:cut].mean(), series[:cut].std()
train, val = lanes((series[:cut] - mean) / std), lanes((series[cut:] - mean) / std)
cell = new_cell(jax.random.key(6))
state = tx.init(cell)
print("yesterday's level as the guess:", float(np.mean((val[1:] - val[:-1]) ** 2)))
for epoch in range(1, EPOCHS + 1):
    h = jnp.zeros((LANES, HIDDEN))
    losses = []
    for start in range(0, len(train) - WINDOW, WINDOW):
        cell, state, h, loss = step(cell, state, h, train[start : start + WINDOW + 1])
        losses.append(float(loss))
    if epoch % 5 == 0:
        _, h = loss_fn(cell, jnp.zeros((LANES, HIDDEN)), val[:60])  # find out where the river stands
        val_loss, _ = loss_fn(cell, h, val[59:])
        print(f"epoch {epoch:3d}  mse {np.mean(losses):.4f}  val {float(val_loss):.4f}")
