"""Bag-of-words sentiment with plain pytrees and hand-written SGD with momentum."""
import os
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import jax
import jax.numpy as jnp
import numpy as np

DIM = 24
MAX_WORDS = 250
LENGTH = 20
LR, MOMENTUM = 0.5, 0.9
EPOCHS, BATCH = 25, 64


def make_reviews(n, rng):
    lexicon = [f"word{i}" for i in range(900)]
    mood = np.random.default_rng(3).normal(size=900)
    texts, labels = [], []
    while len(texts) < n:
        ids = rng.integers(0, 900, size=rng.integers(10, LENGTH + 1))
        score = mood[ids].sum()
        if abs(score) < 2.0:
            continue
        texts.append([lexicon[i] for i in ids])
        labels.append(int(score > 0))
    return texts, np.array(labels)


def build_vocab(texts):
    counts = {}
    for t in texts:
        for w in t:
            counts[w] = counts.get(w, 0) + 1
    ordered = sorted(counts, key=lambda w: (-counts[w], w))
    return {w: i + 1 for i, w in enumerate(ordered)}


def encode(texts, vocab):
    out = np.zeros((len(texts), LENGTH), dtype=np.int32)
    for r, t in enumerate(texts):
        ids = [vocab.get(w, 0) for w in t]
        out[r, : len(ids)] = ids
    return out


rng = np.random.default_rng(11)
train_texts, y_train = make_reviews(4000, rng)
test_texts, y_test = make_reviews(800, rng)
vocab = build_vocab(train_texts)
x_train, x_test = encode(train_texts, vocab), encode(test_texts, vocab)

k1, k2, k3 = jax.random.split(jax.random.PRNGKey(0), 3)
params = {
    "table": 0.3 * jax.random.normal(k1, (MAX_WORDS, DIM)),
    "hidden": {"w": jax.random.normal(k2, (DIM, 32)) * (2 / DIM) ** 0.5, "b": jnp.zeros(32)},
    "out": {"w": jax.random.normal(k3, (32, 1)) * (1 / 32) ** 0.5, "b": jnp.zeros(1)},
}
velocity = jax.tree.map(jnp.zeros_like, params)


def forward(p, ids):
    mask = (ids > 0)[..., None]
    vectors = p["table"][ids] * mask
    pooled = vectors.sum(axis=1) / jnp.sqrt(mask.sum(axis=1))
    h = jax.nn.relu(pooled @ p["hidden"]["w"] + p["hidden"]["b"])
    return (h @ p["out"]["w"] + p["out"]["b"])[:, 0]


def loss_fn(p, ids, y):
    z = forward(p, ids)
    return jnp.mean(jnp.maximum(z, 0) - z * y + jnp.log1p(jnp.exp(-jnp.abs(z))))


@jax.jit
def step(p, v, ids, y):
    loss, g = jax.value_and_grad(loss_fn)(p, ids, y)
    v = jax.tree.map(lambda a, b: MOMENTUM * a + b, v, g)
    p = jax.tree.map(lambda a, b: a - LR * (1 - MOMENTUM) * b, p, v)
    return p, v, loss


for epoch in range(EPOCHS):
    order = rng.permutation(len(x_train))
    losses = []
    for s in range(0, len(order) - BATCH + 1, BATCH):
        idx = order[s : s + BATCH]
        params, velocity, loss = step(params, velocity, x_train[idx], y_train[idx].astype(np.float32))
        losses.append(float(loss))
    acc = float(jnp.mean((forward(params, x_test) > 0) == y_test))
    print(f"epoch {epoch:2d}  loss {np.mean(losses):.4f}  test acc {acc:.3f}")
