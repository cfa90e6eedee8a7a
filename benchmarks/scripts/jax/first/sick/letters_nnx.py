"""A small decoder-only language model on sentences made by a grammar."""

import random

import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

random.seed(0)
NAMES, VERBS = ["anna", "bert", "carl", "dora"], ["sees", "likes", "knows", "calls"]
THINGS, PLACES = ["a dog", "the moon", "an old song", "two birds"], ["at home", "by the sea", "in town"]


def sentence():
    return f"{random.choice(NAMES)} {random.choice(VERBS)} {random.choice(THINGS)} {random.choice(PLACES)}. "


text = "".join(sentence() for _ in range(1500))
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
data = np.array([stoi[c] for c in text], dtype=np.int32)
train_data, val_data = data[: int(0.9 * len(data))], data[int(0.9 * len(data)) :]
block_size, batch_size, dim = 24, 16, 32


class TransformerBlock(nnx.Module):
    def __init__(self, dim, heads, rngs):
        self.ln1 = nnx.LayerNorm(dim, rngs=rngs)
        self.attn = nnx.MultiHeadAttention(heads, dim, decode=False, rngs=rngs)
        self.ln2 = nnx.LayerNorm(dim, rngs=rngs)
        self.up = nnx.Linear(dim, 2 * dim, rngs=rngs)
        self.down = nnx.Linear(2 * dim, dim, rngs=rngs)

    def __call__(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.down(nnx.gelu(self.up(self.ln2(x))))


class MiniGPT(nnx.Module):
    def __init__(self, vocab, rngs):
        self.tok = nnx.Embed(vocab, dim, rngs=rngs)
        self.pos = nnx.Embed(block_size, dim, rngs=rngs)
        self.block = TransformerBlock(dim, 2, rngs)
        self.ln = nnx.LayerNorm(dim, rngs=rngs)
        self.head = nnx.Linear(dim, vocab, rngs=rngs)

    def __call__(self, ids):
        x = self.tok(ids) + self.pos(jnp.arange(ids.shape[1]))[None]
        return self.head(self.ln(self.block(x)))


def get_batch(source, rng):
    starts = rng.integers(0, len(source) - block_size - 1, batch_size)
    x = np.stack([source[s : s + block_size] for s in starts])
    y = np.stack([source[s + 1 : s + block_size + 1] for s in starts])
    return jnp.asarray(x), jnp.asarray(y)


def loss_fn(model, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()


@nnx.jit
def train_step(model, optimizer, x, y):
    loss, grads = nnx.value_and_grad(loss_fn)(model, x, y)
    optimizer.update(model, grads)
    return loss


eval_step = nnx.jit(loss_fn)
model = MiniGPT(len(chars), nnx.Rngs(1))
optimizer = nnx.Optimizer(model, optax.adamw(5e-3), wrt=nnx.Param)
rng = np.random.default_rng(1)
for it in range(251):
    loss = train_step(model, optimizer, *get_batch(train_data, rng))
    if it % 50 == 0:
        print(f"iter {it}: train {loss:.3f} val {eval_step(model, *get_batch(val_data, rng)):.3f}")
