"""Customers who leave (about one in seven), from a made-up table."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax

rng = np.random.default_rng(14)
n = 4000
tenure = rng.gamma(2.0, 12.0, n)
calls = rng.poisson(1.5, n)
bill = rng.normal(60, 20, n)
contract = rng.integers(0, 3, n)
score = -1.3 - 0.05 * tenure + 0.75 * calls + 0.03 * (bill - 60) - 0.9 * (contract == 2) + 0.4 * rng.normal(size=n)
leaves = (rng.random(n) < 1 / (1 + np.exp(-1.6 * score))).astype(np.float32)
table = np.column_stack([tenure, calls, bill, contract == 0, contract == 1, contract == 2]).astype(np.float32)
train, val = slice(0, 3200), slice(3200, None)
table = (table - table[train].mean(0)) / table[train].std(0)
print(f"share of leavers: {leaves.mean():.3f}")

net = eqx.nn.MLP(6, "scalar", 24, 2, activation=jax.nn.silu, key=jr.PRNGKey(14))
pos_weight = 2.0


def weighted_bce(net, x, y):
    z = jax.vmap(net)(x)
    weight = jnp.where(y == 1, pos_weight, 1.0)
    return jnp.mean(weight * optax.sigmoid_binary_cross_entropy(z, y))


opt = optax.chain(optax.clip_by_global_norm(2.0), optax.adam(1e-3))
state = opt.init(eqx.filter(net, eqx.is_array))


@eqx.filter_jit
def step(net, state, x, y):
    loss, grads = eqx.filter_value_and_grad(weighted_bce)(net, x, y)
    updates, state = opt.update(grads, state)
    return eqx.apply_updates(net, updates), state, loss


def auc(scores, y):
    ranks = np.argsort(np.argsort(scores)) + 1
    pos = y == 1
    return (ranks[pos].sum() - pos.sum() * (pos.sum() + 1) / 2) / (pos.sum() * (~pos).sum())


for epoch in range(12):
    epoch_losses = []
    for idx in np.split(rng.permutation(3200), 50):
        net, state, loss = step(net, state, table[idx], leaves[idx])
        epoch_losses.append(float(loss))
    scores = np.asarray(jax.vmap(net)(table[val]))
    val_loss = float(weighted_bce(net, table[val], leaves[val]))
    print(f"epoch {epoch} loss {np.mean(epoch_losses):.4f} val {val_loss:.4f} auc {auc(scores, leaves[val]):.3f}")
