"""A small network for digits in Equinox. With --log the loss is written by hand, in the way that breaks."""

import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

X, y = load_digits(return_X_y=True)
X, y = (X / 16).astype(np.float32), y.astype(np.int32)

breaks = "--log" in sys.argv
model = eqx.nn.MLP(64, 10, 24, 1, key=jax.random.key(0))
tx = optax.sgd(0.1)
state = tx.init(eqx.filter(model, eqx.is_array))


def loss_fn(model, x, labels):
    scores = jax.vmap(model)(x)
    if breaks:
        shares = jax.nn.softmax(500 * scores)
        return -jnp.log(shares[jnp.arange(len(labels)), labels]).mean()
    return optax.softmax_cross_entropy_with_integer_labels(scores, labels).mean()


@eqx.filter_jit
def step(model, state, x, labels):
    loss, gradients = eqx.filter_value_and_grad(loss_fn)(model, x, labels)
    updates, state = tx.update(gradients, state, model)
    return eqx.apply_updates(model, updates), state, loss


rng = np.random.default_rng(0)
for _ in range(60):
    rows = rng.integers(0, len(X), 32)
    model, state, loss = step(model, state, X[rows], y[rows])
print(repr(float(loss)), [float(jnp.abs(leaf).sum()) for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_array))])
