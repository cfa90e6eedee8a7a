import os
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_breast_cancer

SEED = 5
EPOCHS = 12
BATCH = 32

X, Y = load_breast_cancer(return_X_y=True)
perm = np.random.default_rng(SEED).permutation(len(X))
X, Y = X[perm].astype(np.float32), Y[perm].astype(np.float32)
cut = int(0.75 * len(X))
mean, std = X[:cut].mean(0), X[:cut].std(0)
x_train, y_train = (X[:cut] - mean) / std, Y[:cut]
x_val, y_val = X[cut:], Y[cut:]
print("train", x_train.shape, "val", x_val.shape, "positives", y_train.mean())

model = eqx.nn.MLP(in_size=30, out_size="scalar", width_size=32, depth=2, activation=jax.nn.gelu, key=jax.random.PRNGKey(SEED))
optim = optax.adam(1e-3)
opt_state = optim.init(eqx.filter(model, eqx.is_inexact_array))


def bce(model, x, y):
    z = jax.vmap(model)(x)
    return optax.sigmoid_binary_cross_entropy(z, y).mean()


def make_step(model, opt_state, x, y):
    loss, grads = eqx.filter_value_and_grad(bce)(model, x, y)
    updates, opt_state = optim.update(grads, opt_state)
    return eqx.apply_updates(model, updates), opt_state, loss


@eqx.filter_jit
def evaluate(model, x, y):
    z = jax.vmap(model)(x)
    return optax.sigmoid_binary_cross_entropy(z, y).mean(), jnp.mean((z > 0) == (y > 0.5))


rng = np.random.default_rng(SEED + 1)
for epoch in range(1, EPOCHS + 1):
    order = rng.permutation(cut)
    running = []
    for s in range(0, cut - BATCH + 1, BATCH):
        sel = order[s : s + BATCH]
        model, opt_state, loss = make_step(model, opt_state, x_train[sel], y_train[sel])
        running.append(loss.item())
    vl, va = evaluate(model, x_val, y_val)
    if epoch % 3 == 0:
        print(f"epoch {epoch}: train {np.mean(running):.4f} | val loss {float(vl):.4f} acc {float(va):.3f}")
