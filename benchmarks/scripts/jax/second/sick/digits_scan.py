"""Whole epochs inside lax.scan: one compiled call per epoch."""
import os
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import jax
import jax.numpy as jnp
import optax
from jax import lax
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

BATCH = 50
EPOCHS = 12


def dense(key, n_in, n_out):
    return {"w": jnp.zeros((n_in, n_out)), "b": jnp.zeros((n_out,))}


def apply(params, x):
    h = jnp.tanh(x @ params["l1"]["w"] + params["l1"]["b"])
    h = jnp.tanh(h @ params["l2"]["w"] + params["l2"]["b"])
    return h @ params["l3"]["w"] + params["l3"]["b"]


def objective(params, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(apply(params, x), y).mean()


optimizer = optax.sgd(0.1, momentum=0.9)


def body(carry, batch):
    params, state = carry
    x, y = batch
    loss, grads = jax.value_and_grad(objective)(params, x, y)
    updates, state = optimizer.update(grads, state, params)
    params = optax.apply_updates(params, updates)
    return (params, state), loss


@jax.jit
def run_epoch(params, state, key, x, y):
    steps = x.shape[0] // BATCH
    order = jax.random.permutation(key, x.shape[0])[: steps * BATCH]
    xb = x[order].reshape(steps, BATCH, -1)
    yb = y[order].reshape(steps, BATCH)
    (params, state), losses = lax.scan(body, (params, state), (xb, yb))
    return params, state, losses.mean()


@jax.jit
def accuracy(params, x, y):
    return jnp.mean(apply(params, x).argmax(axis=-1) == y)


def main():
    x, y = load_digits(return_X_y=True)
    x = (x - x.mean()) / x.std()
    xa, xb, ya, yb = train_test_split(jnp.asarray(x, jnp.float32), jnp.asarray(y), test_size=0.25, random_state=0)
    key = jax.random.PRNGKey(7)
    key, a, b, c = jax.random.split(key, 4)
    params = {"l1": dense(a, 64, 80), "l2": dense(b, 80, 40), "l3": dense(c, 40, 10)}
    state = optimizer.init(params)
    for epoch in range(EPOCHS):
        key, sub = jax.random.split(key)
        params, state, loss = run_epoch(params, state, sub, xa, ya)
        print(f"epoch {epoch:2d} | loss {float(loss):.4f} | held-out accuracy {float(accuracy(params, xb, yb)):.3f}")


main()
