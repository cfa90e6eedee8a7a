"""Who pays back? A small credit table with noisy answers, plain JAX and optax, best epoch kept by validation."""
import copy
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import make_classification

N = 900


def load():
    x, y = make_classification(
        n_samples=N + 600, n_features=20, n_informative=6, n_redundant=2, flip_y=0.25, class_sep=0.8, random_state=17
    )
    x = (x - x.mean(0)) / x.std(0)
    x, y = x.astype(np.float32), y.astype(np.float32)
    return (x[:N], y[:N]), (x[N:], y[N:])


def split(x, y, share=0.8, seed=0):
    rng = np.random.default_rng(seed)
    cut = int(share * len(x))
    train_rows = rng.permutation(len(x))[:cut]
    val_rows = rng.permutation(len(x))[cut:]
    return (x[train_rows], y[train_rows]), (x[val_rows], y[val_rows])


def init(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [(jax.random.normal(k, (a, b)) / jnp.sqrt(a), jnp.zeros(b)) for k, a, b in zip(keys, sizes[:-1], sizes[1:])]


def predict(params, x):
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return (x @ w + b)[:, 0]


def loss_fn(params, x, y):
    return optax.sigmoid_binary_cross_entropy(predict(params, x), y).mean()


@jax.jit
def accuracy(params, x, y):
    return jnp.mean((predict(params, x) > 0) == (y > 0.5))


@functools.partial(jax.jit, static_argnums=0)
def step(tx, params, opt_state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, opt_state = tx.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


(x, y), (x_new, y_new) = load()
(x_train, y_train), (x_val, y_val) = split(x, y)
params = init(jax.random.PRNGKey(0), [20, 48, 24, 1])
tx = optax.adam(2e-3)
opt_state = tx.init(params)
rng = np.random.default_rng(1)
best, kept = 0.0, params

for epoch in range(20):
    order = rng.permutation(len(x_train))
    total = 0.0
    for i in range(0, len(order), 40):
        rows = order[i : i + 40]
        params, opt_state, loss = step(tx, params, opt_state, x_train[rows], y_train[rows])
        total += float(loss) * len(rows)
    val = float(accuracy(params, x_val, y_val))
    if val > best:
        best, kept = val, copy.deepcopy(params)
    if epoch % 4 == 3:
        val_loss = float(loss_fn(params, x_val, y_val))
        print(f"epoch {epoch + 1}: loss {total / len(x_train):.4f}  val loss {val_loss:.4f}  val accuracy {val:.3f}")

print(f"best validation accuracy {best:.3f}; on the new customers {float(accuracy(kept, x_new, y_new)):.3f}")
