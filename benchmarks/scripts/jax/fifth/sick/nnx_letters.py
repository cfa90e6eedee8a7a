"""A small transformer for characters in Flax NNX."""

from pydoc_data.topics import topics

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

BLOCK, BATCH, STEPS = 32, 32, 400

text = "".join(c for c in "".join(topics[k] for k in sorted(topics)) if c.isascii())[:120_000]
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
ids = jnp.array(np.array([stoi[c] for c in text], dtype=np.int32))
cut = int(0.9 * len(text))
train_ids, val_ids = ids[:cut], ids[cut:]


class Block(nnx.Module):
    def __init__(self, dim, heads, *, rngs):
        self.ln1 = nnx.LayerNorm(dim, rngs=rngs)
        self.attn = nnx.MultiHeadAttention(num_heads=heads, in_features=dim, decode=False, rngs=rngs)
        self.ln2 = nnx.LayerNorm(dim, rngs=rngs)
        self.up = nnx.Linear(dim, 4 * dim, rngs=rngs)
        self.down = nnx.Linear(4 * dim, dim, rngs=rngs)

    def __call__(self, x):
        mask = nnx.make_causal_mask(jnp.ones(x.shape[:2]))
        x = x + self.attn(self.ln1(x), mask=mask)
        return x + self.down(nnx.gelu(self.up(self.ln2(x))))


class LanguageModel(nnx.Module):
    def __init__(self, vocab, dim=48, heads=4, layers=2, *, rngs):
        self.tokens = nnx.Embed(vocab, dim, rngs=rngs)
        self.positions = nnx.Embed(BLOCK, dim, rngs=rngs)
        self.blocks = nnx.List([Block(dim, heads, rngs=rngs) for _ in range(layers)])
        self.norm = nnx.LayerNorm(dim, rngs=rngs)
        self.head = nnx.Linear(dim, vocab, use_bias=False, rngs=rngs)

    def __call__(self, ids):
        x = self.tokens(ids) + self.positions(jnp.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def get_batch(key, source):
    starts = jax.random.randint(key, (BATCH,), 0, len(source) - BLOCK - 1)
    windows = source[starts[:, None] + jnp.arange(BLOCK + 1)]
    return windows[:, :-1], windows[:, 1:]


def loss_fn(model, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()


@nnx.jit
def train_step(model, optimizer, x, y):
    loss, grads = nnx.value_and_grad(loss_fn)(model, x, y)
    optimizer.update(model, grads)
    return loss


@nnx.jit
def eval_step(model, x, y):
    return loss_fn(model, x, y)


def main():
    model = LanguageModel(len(chars), rngs=nnx.Rngs(0))
    schedule = optax.warmup_cosine_decay_schedule(0.0, 2e-3, 40, STEPS, 1e-4)
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=0.01))
    optimizer = nnx.Optimizer(model, tx, wrt=nnx.Param)

    key = jax.random.key(1)
    key, batch_key = jax.random.split(key)
    losses = []
    for step in range(1, STEPS + 1):
        x, y = get_batch(batch_key, train_ids)
        losses.append(float(train_step(model, optimizer, x, y)))
        if step % 80 == 0:
            key, *eval_keys = jax.random.split(key, 9)
            val = np.mean([float(eval_step(model, *get_batch(k, val_ids))) for k in eval_keys])
            print(f"step {step}: train {np.mean(losses[-80:]):.4f}  val {val:.4f}")


if __name__ == "__main__":
    main()
