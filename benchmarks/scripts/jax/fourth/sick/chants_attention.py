"""A tiny decoder on made-up melodies of different lengths (id 0 fills up)."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

VOCAB, LENGTH, DIM, HEADS = 13, 16, 32, 2
FILL = 0


def melodies(n, rng):
    """Each note follows from the two before it, one in ten is chance."""
    out = np.zeros((n, LENGTH), np.int32)
    for row in out:
        size = rng.integers(12, LENGTH + 1)
        notes = list(rng.integers(0, 12, 2))
        while len(notes) < size:
            following = (notes[-1] + 2 * notes[-2] + 1) % 12
            notes.append(following if rng.random() > 0.1 else rng.integers(0, 12))
        row[:size] = np.array(notes) + 1
    return out


class Block(nnx.Module):
    def __init__(self, rngs):
        self.norm1 = nnx.LayerNorm(DIM, rngs=rngs)
        self.attn = nnx.MultiHeadAttention(HEADS, DIM, decode=False, rngs=rngs)
        self.norm2 = nnx.LayerNorm(DIM, rngs=rngs)
        self.up = nnx.Linear(DIM, 4 * DIM, rngs=rngs)
        self.down = nnx.Linear(4 * DIM, DIM, rngs=rngs)

    def __call__(self, x, mask):
        x = x + self.attn(self.norm1(x), mask=mask)
        return x + self.down(nnx.gelu(self.up(self.norm2(x))))


class Decoder(nnx.Module):
    def __init__(self, rngs):
        self.notes = nnx.Embed(VOCAB, DIM, rngs=rngs)
        self.places = nnx.Embed(LENGTH, DIM, rngs=rngs)
        self.first = Block(rngs)
        self.second = Block(rngs)
        self.norm = nnx.LayerNorm(DIM, rngs=rngs)
        self.head = nnx.Linear(DIM, VOCAB, rngs=rngs)

    def __call__(self, ids):
        real = ids != FILL
        mask = nnx.make_attention_mask(real, real)
        x = self.notes(ids) + self.places(jnp.arange(ids.shape[1]))
        x = self.second(self.first(x, mask), mask)
        return self.head(self.norm(x))


def loss_fn(model, ids):
    logits, wanted = model(ids[:, :-1]), ids[:, 1:]
    real = wanted != FILL
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, wanted)
    return jnp.sum(losses * real) / jnp.sum(real)


@nnx.jit
def train_step(model, opt, ids):
    loss, grads = nnx.value_and_grad(loss_fn)(model, ids)
    opt.update(model, grads)
    return loss


@nnx.jit
def continue_by(model, ids, at):
    return jnp.argmax(model(ids)[:, at - 1], -1)


rng = np.random.default_rng(21)
train, val = melodies(4000, rng), melodies(500, rng)
model = Decoder(nnx.Rngs(21))
epochs, batch = 10, 80
rate = optax.warmup_cosine_decay_schedule(0.0, 3e-3, 60, epochs * len(train) // batch)
opt = nnx.Optimizer(model, optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate, weight_decay=1e-3)), wrt=nnx.Param)
evaluate = nnx.jit(loss_fn)
for epoch in range(epochs):
    order = rng.permutation(len(train))
    losses = [train_step(model, opt, train[order[i : i + batch]]) for i in range(0, len(train), batch)]
    print(f"epoch {epoch + 1:2d}  loss {np.mean(losses):.4f}  val {float(evaluate(model, val)):.4f}")

start = np.zeros((500, LENGTH - 1), np.int32)
start[:, :11] = val[:, :11]
guess = continue_by(model, start, 11)
rule = (start[:, 10] - 1 + 2 * (start[:, 9] - 1) + 1) % 12 + 1
print("next note by the rule, when nothing follows yet:", float(np.mean(np.asarray(guess) == rule)))
