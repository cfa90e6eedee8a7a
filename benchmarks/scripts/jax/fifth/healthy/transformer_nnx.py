"""Copy-and-reverse language model in Flax NNX: after a separator, the letters come back reversed."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

LETTERS, SEP, LENGTH = 12, 12, 6
STEPS = 600


class Block(nnx.Module):
    def __init__(self, dim, heads, rngs):
        self.norm1 = nnx.LayerNorm(dim, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(num_heads=heads, in_features=dim, decode=False, rngs=rngs)
        self.norm2 = nnx.LayerNorm(dim, rngs=rngs)
        self.fc1 = nnx.Linear(dim, 4 * dim, rngs=rngs)
        self.fc2 = nnx.Linear(4 * dim, dim, rngs=rngs)

    def __call__(self, x):
        mask = nnx.make_causal_mask(jnp.ones(x.shape[:2]))
        x = x + self.attention(self.norm1(x), mask=mask)
        return x + self.fc2(nnx.gelu(self.fc1(self.norm2(x))))


class Reverser(nnx.Module):
    def __init__(self, dim=48, heads=4, layers=2, *, rngs):
        self.tokens = nnx.Embed(LETTERS + 1, dim, rngs=rngs)
        self.places = nnx.Embed(2 * LENGTH, dim, rngs=rngs)
        self.blocks = nnx.List([Block(dim, heads, rngs) for _ in range(layers)])
        self.norm = nnx.LayerNorm(dim, rngs=rngs)
        self.head = nnx.Linear(dim, LETTERS + 1, rngs=rngs)

    def __call__(self, ids):
        x = self.tokens(ids) + self.places(jnp.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def make_batch(key, n=64):
    letters = jax.random.randint(key, (n, LENGTH), 0, LETTERS)
    seq = jnp.concatenate([letters, jnp.full((n, 1), SEP), letters[:, ::-1]], axis=1)
    return seq[:, :-1], seq[:, 1:]


def loss_fn(model, x, y):
    logits = model(x)
    # the letters before the separator are random: only the second half can be known
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, y)[:, LENGTH:]
    hits = (logits.argmax(-1) == y)[:, LENGTH:]
    return losses.mean(), hits.all(axis=1).mean()


@nnx.jit
def train_step(model, optimizer, x, y):
    (loss, exact), grads = nnx.value_and_grad(loss_fn, has_aux=True)(model, x, y)
    optimizer.update(model, grads)
    return loss, exact


@nnx.jit
def eval_step(model, x, y):
    return loss_fn(model, x, y)


model = Reverser(rngs=nnx.Rngs(0))
schedule = optax.warmup_cosine_decay_schedule(0.0, 3e-3, 50, STEPS, 1e-4)
tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=0.01))
optimizer = nnx.Optimizer(model, tx, wrt=nnx.Param)
key = jax.random.key(42)
losses = []
for step in range(1, STEPS + 1):
    key, sub = jax.random.split(key)
    loss, exact = train_step(model, optimizer, *make_batch(sub))
    losses.append(float(loss))
    if step % 100 == 0:
        key, sub = jax.random.split(key)
        val, exact = eval_step(model, *make_batch(sub, 256))
        print(f"step {step}: train {np.mean(losses[-100:]):.4f}  val {float(val):.4f}  exact {float(exact):.3f}")
