"""Digits with a plain pytree of parameters; large batches are taken in parts."""

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_digits

PARTS = 16
PART_SIZE = 16
RATE = 0.1
EPOCHS = 40


def init(key, sizes):
    params = []
    for n_in, n_out in zip(sizes[:-1], sizes[1:]):
        key, sub = jax.random.split(key)
        params.append({"w": jax.random.normal(sub, (n_in, n_out)) * jnp.sqrt(2.0 / n_in), "b": jnp.zeros(n_out)})
    return params


def apply(params, x):
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss_fn(params, x, y):
    logp = jax.nn.log_softmax(apply(params, x))
    return -jnp.take_along_axis(logp, y[:, None], axis=1).mean()


grad_fn = jax.jit(jax.value_and_grad(loss_fn))


@jax.jit
def sgd(params, velocity, grads):
    velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, grads)
    return jax.tree.map(lambda p, v: p - RATE * v, params, velocity), velocity


@jax.jit
def evaluate(params, x, y):
    return loss_fn(params, x, y), (apply(params, x).argmax(1) == y).mean()


def big_batch_gradient(params, x, y):
    """The gradient over PARTS * PART_SIZE samples, a part at a time."""
    total = jax.tree.map(jnp.zeros_like, params)
    loss_sum = 0.0
    for i in range(PARTS):
        rows = slice(i * PART_SIZE, (i + 1) * PART_SIZE)
        loss, grads = grad_fn(params, x[rows], y[rows])
        total = jax.tree.map(jnp.add, total, grads)
        loss_sum += float(loss)
    return loss_sum / PARTS, total


def main():
    digits = load_digits()
    rng = np.random.default_rng(4)
    order = rng.permutation(len(digits.target))
    X = (digits.data[order] / 8.0 - 1.0).astype(np.float32)
    y = digits.target[order].astype(np.int32)
    X_train, y_train, X_val, y_val = X[:1440], y[:1440], X[1440:], y[1440:]

    params = init(jax.random.key(4), [64, 96, 48, 10])
    velocity = jax.tree.map(jnp.zeros_like, params)
    for epoch in range(1, EPOCHS + 1):
        perm = rng.permutation(len(X_train))
        losses = []
        for start in range(0, len(perm) - PARTS * PART_SIZE + 1, PARTS * PART_SIZE):
            idx = perm[start : start + PARTS * PART_SIZE]
            loss, grads = big_batch_gradient(params, X_train[idx], y_train[idx])
            params, velocity = sgd(params, velocity, grads)
            losses.append(loss)
        if epoch % 5 == 0:
            val_loss, acc = evaluate(params, X_val, y_val)
            print(f"epoch {epoch}: train {np.mean(losses):.4f}  val {float(val_loss):.4f}  acc {float(acc):.3f}")


if __name__ == "__main__":
    main()
