"""Next-token model on a made-up grammar: tied embedding, bfloat16 compute with float32 weights, masked padding."""
import os
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

VOCAB, PAD, LEN = 24, 0, 14


def all_sentences():
    rows = []
    for first in range(1, VOCAB):
        for step in range(1, 8):
            for size in range(8, LEN + 2):
                row = np.full(LEN + 1, PAD, np.int32)
                row[:size] = (first - 1 + step * np.arange(size)) % (VOCAB - 1) + 1
                rows.append(row)
    return np.stack(rows)


class TiedGRU(eqx.Module):
    embed: jax.Array
    cell: eqx.nn.GRUCell
    proj: eqx.nn.Linear

    def __init__(self, dim, hidden, key):
        a, b, c = jax.random.split(key, 3)
        self.embed = jax.random.normal(a, (VOCAB, dim)) / np.sqrt(dim)
        self.cell = eqx.nn.GRUCell(dim, hidden, key=b)
        self.proj = eqx.nn.Linear(hidden, dim, key=c)

    def __call__(self, ids):
        xs = self.embed[ids]

        def tick(h, x):
            h = self.cell(x, h)
            return h, self.embed @ self.proj(h)

        _, logits = jax.lax.scan(tick, jnp.zeros(self.cell.hidden_size, xs.dtype), xs)
        return logits


def cast(model):
    return jax.tree.map(lambda a: a.astype(jnp.bfloat16) if eqx.is_inexact_array(a) else a, model)


def loss_fn(model, batch):
    logits = jax.vmap(cast(model))(batch[:, :-1]).astype(jnp.float32)
    target = batch[:, 1:]
    keep = target != PAD
    ce = optax.softmax_cross_entropy_with_integer_labels(logits, target)
    known = keep & (jnp.arange(LEN) > 0)
    right = jnp.sum((logits.argmax(-1) == target) & known) / jnp.sum(known)
    return jnp.sum(ce * keep) / jnp.sum(keep), right


model = TiedGRU(32, 48, jax.random.PRNGKey(4))
optim = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(optax.linear_schedule(1e-4, 5e-3, 40)))
opt_state = optim.init(eqx.filter(model, eqx.is_array))


@eqx.filter_jit
def step(model, opt_state, batch):
    (loss, right), grads = eqx.filter_value_and_grad(loss_fn, has_aux=True)(model, batch)
    updates, opt_state = optim.update(grads, opt_state)
    return eqx.apply_updates(model, updates), opt_state, loss, right


evaluate = eqx.filter_jit(loss_fn)
rng = np.random.default_rng(4)
text = rng.permutation(all_sentences())
train, valid = text[:960], text[960:]
for epoch in range(1, 21):
    for idx in rng.permutation(len(train)).reshape(-1, 64):
        model, opt_state, loss, right = step(model, opt_state, train[idx])
    if epoch % 2 == 0:
        vl, va = evaluate(model, valid)
        print(f"epoch {epoch} loss {float(loss):.4f} acc {float(right):.3f} | valid loss {float(vl):.4f} acc {float(va):.3f}")
