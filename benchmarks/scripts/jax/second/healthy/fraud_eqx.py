"""Three quarters of the rows are of one class; the rare one is weighted up."""
import os
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
import argparse

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import make_classification
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split

ap = argparse.ArgumentParser()
ap.add_argument("--epochs", type=int, default=20)
ap.add_argument("--batch", type=int, default=128)
ap.add_argument("--lr", type=float, default=2e-3)
ap.add_argument("--patience", type=int, default=6)
args = ap.parse_args()

x, y = make_classification(3000, 16, n_informative=9, n_redundant=3, weights=[0.75, 0.25], class_sep=1.6, flip_y=0.0, random_state=12)
xt, xv, yt, yv = train_test_split(x, y, test_size=0.2, stratify=y, random_state=12)
m, s = xt.mean(0), xt.std(0)
xt, xv = ((xt - m) / s).astype(np.float32), ((xv - m) / s).astype(np.float32)
weights = jnp.asarray(len(yt) / (2.0 * np.bincount(yt)), dtype=jnp.float32)


class Classifier(eqx.Module):
    layers: list
    norm: eqx.nn.LayerNorm

    def __init__(self, key):
        k = jax.random.split(key, 3)
        self.layers = [eqx.nn.Linear(16, 48, key=k[0]), eqx.nn.Linear(48, 24, key=k[1]), eqx.nn.Linear(24, 2, key=k[2])]
        self.norm = eqx.nn.LayerNorm(48)

    def __call__(self, x):
        x = jax.nn.relu(self.norm(self.layers[0](x)))
        x = jax.nn.relu(self.layers[1](x))
        return self.layers[2](x)


def weighted_loss(model, xb, yb):
    ce = optax.softmax_cross_entropy_with_integer_labels(jax.vmap(model)(xb), yb)
    w = weights[yb]
    return jnp.sum(w * ce) / jnp.sum(w)


model = Classifier(jax.random.PRNGKey(2))
optim = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(args.lr))
opt_state = optim.init(eqx.filter(model, eqx.is_array))


@eqx.filter_jit
def step(model, opt_state, xb, yb):
    loss, grads = eqx.filter_value_and_grad(weighted_loss)(model, xb, yb)
    updates, opt_state = optim.update(grads, opt_state)
    return eqx.apply_updates(model, updates), opt_state, loss


validate = eqx.filter_jit(weighted_loss)
rng = np.random.default_rng(2)
best, best_model, waited = float("inf"), model, 0
for epoch in range(args.epochs):
    order = rng.permutation(len(xt))
    losses = []
    for i in range(0, len(order), args.batch):
        pick = order[i : i + args.batch]
        model, opt_state, loss = step(model, opt_state, xt[pick], yt[pick])
        losses.append(float(loss))
    val = float(validate(model, xv, yv))
    score = balanced_accuracy_score(yv, np.asarray(jax.vmap(model)(xv)).argmax(1))
    print(f"{epoch:2d} train {np.mean(losses):.4f} val {val:.4f} balanced accuracy {score:.3f}")
    if val < best:
        best, best_model, waited = val, model, 0
    else:
        waited += 1
        if waited >= args.patience:
            print("no progress, keeping the best model")
            break
print("best validation loss", round(best, 4))
