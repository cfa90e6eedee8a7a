"""Density of two moons by a small RealNVP. The loss is a negative log-likelihood and zero means nothing to it."""
import argparse

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import make_moons

parser = argparse.ArgumentParser()
parser.add_argument("--couplings", type=int, default=6)
parser.add_argument("--hidden", type=int, default=32)
parser.add_argument("--epochs", type=int, default=40)
parser.add_argument("--batch", type=int, default=200)
parser.add_argument("--lr", type=float, default=2e-3)
args = parser.parse_args()


def init_coupling(key):
    k1, k2 = jax.random.split(key)
    return {
        "w1": jax.random.normal(k1, (1, args.hidden)),
        "b1": jnp.zeros(args.hidden),
        "w2": jax.random.normal(k2, (args.hidden, args.hidden)) / args.hidden**0.5,
        "b2": jnp.zeros(args.hidden),
        # zero on purpose: every coupling starts as the identity
        "w3": jnp.zeros((args.hidden, 2)),
        "b3": jnp.zeros(2),
    }


def shift_and_scale(p, kept):
    h = jnp.tanh(kept @ p["w1"] + p["b1"])
    h = jnp.tanh(h @ p["w2"] + p["b2"])
    out = h @ p["w3"] + p["b3"]
    return out[:, :1], 2.0 * jnp.tanh(out[:, 1:] / 2.0)


def log_prob(params, x):
    log_det = jnp.zeros(len(x))
    for i, p in enumerate(params):
        kept, moved = (x[:, :1], x[:, 1:]) if i % 2 == 0 else (x[:, 1:], x[:, :1])
        shift, log_scale = shift_and_scale(p, kept)
        moved = moved * jnp.exp(log_scale) + shift
        x = jnp.concatenate([kept, moved] if i % 2 == 0 else [moved, kept], axis=1)
        log_det += log_scale[:, 0]
    return -0.5 * jnp.sum(x**2, axis=1) - jnp.log(2 * jnp.pi) + log_det


def nll(params, x):
    return -jnp.mean(log_prob(params, x))


def data(n, seed):
    x, _ = make_moons(n, noise=0.06, random_state=seed)
    return ((x - [0.5, 0.25]) / [0.87, 0.5]).astype(np.float32)


train, val = data(6000, 1), data(1500, 2)
params = [init_coupling(k) for k in jax.random.split(jax.random.PRNGKey(1), args.couplings)]
schedule = optax.warmup_cosine_decay_schedule(0.0, args.lr, 60, args.epochs * len(train) // args.batch)
tx = optax.chain(optax.clip_by_global_norm(2.0), optax.adam(schedule))
opt_state = tx.init(params)


@jax.jit
def step(params, opt_state, x):
    loss, grads = jax.value_and_grad(nll)(params, x)
    updates, opt_state = tx.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state, loss


rng = np.random.default_rng(1)
for epoch in range(1, args.epochs + 1):
    total = 0.0
    batches = rng.permutation(len(train)).reshape(-1, args.batch)
    for rows in batches:
        params, opt_state, loss = step(params, opt_state, train[rows])
        total += float(loss)
    if epoch % 5 == 0:
        print(f"epoch {epoch:3d}  nll {total / len(batches):+.4f}  held out {float(nll(params, val)):+.4f}")
