"""Shopping baskets: each item is scored, the basket's share of fresh goods is to be told."""

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

ITEMS, SLOTS, DIM = 40, 6, 12
rng = np.random.default_rng(30)
mx.random.seed(30)
freshness = rng.random(ITEMS).astype(np.float32)


def draw(n):
    """Ids of the items and which slots are filled."""
    ids = rng.integers(0, ITEMS, (n, SLOTS))
    filled = (rng.random((n, SLOTS)) < 0.8).astype(np.float32)
    share = (freshness[ids] * filled).sum(1) / np.maximum(filled.sum(1), 1)
    return mx.array(ids.astype(np.int32)), mx.array(filled), mx.array(share)


class BasketModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(ITEMS, DIM)
        self.hidden = nn.Linear(DIM, 24)
        self.out = nn.Linear(24, 1)

    def __call__(self, ids, filled):
        vectors = self.table(ids) * filled[..., None]
        pooled = vectors.sum(axis=1) / filled.sum(axis=1, keepdims=True)
        return self.out(nn.relu(self.hidden(pooled)))[:, 0]


def loss_fn(model, ids, filled, share):
    return nn.losses.smooth_l1_loss(model(ids, filled), share, reduction="mean")


model = BasketModel()
optimizer = optim.Adam(learning_rate=3e-3)
step = nn.value_and_grad(model, loss_fn)
recent = []
for i in range(1, 1201):
    loss, grads = step(model, *draw(24))
    optimizer.update(model, grads)
    mx.eval(model.parameters(), optimizer.state)
    recent.append(loss.item())
    if i % 100 == 0:
        print(f"step {i:4d} loss {np.mean(recent[-100:]):.5f}")
