"""Decoder-only transformer that continues "73+54=280" (all numbers from the right); one matrix embeds and reads out."""
from dataclasses import dataclass

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

mx.set_default_device(mx.cpu)
SIGNS = "0123456789+="
LENGTH = 9  # ba+dc=zyx


@dataclass
class Config:
    dims: int = 32
    heads: int = 4
    layers: int = 2
    rate: float = 3e-3
    batch: int = 60
    epochs: int = 4
    warmup: int = 40


def all_sums():
    pairs = [(p, q) for p in range(100) for q in range(100)]
    lines = [f"{p:02d}"[::-1] + "+" + f"{q:02d}"[::-1] + "=" + f"{p + q:03d}"[::-1] for p, q in pairs]
    return np.array([[SIGNS.index(c) for c in line] for line in lines], np.int32)


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(c.dims), nn.RMSNorm(c.dims)
        self.attention = nn.MultiHeadAttention(c.dims, c.heads)
        self.up, self.down = nn.Linear(c.dims, 4 * c.dims), nn.Linear(4 * c.dims, c.dims)

    def __call__(self, x, mask):
        h = self.norm1(x)
        x = x + self.attention(h, h, h, mask)
        return x + self.down(nn.gelu(self.up(self.norm2(x))))


class Decoder(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.signs = nn.Embedding(len(SIGNS), c.dims)
        self.places = nn.Embedding(LENGTH, c.dims)
        self.layers = [Layer(c) for _ in range(c.layers)]
        self.norm = nn.RMSNorm(c.dims)

    def __call__(self, ids):
        n = ids.shape[1]
        mask = nn.MultiHeadAttention.create_additive_causal_mask(n)
        x = self.signs(ids) + self.places(mx.arange(n))
        for layer in self.layers:
            x = layer(x, mask)
        return self.signs.as_linear(self.norm(x))


def loss_fn(model, ids):
    """Only the answer counts: the numbers asked for are random and cannot be foreseen."""
    losses = nn.losses.cross_entropy(model(ids[:, :-1]), ids[:, 1:])
    return mx.mean(losses[:, 5:])


def solve(model, ids):
    known = np.array(ids)
    for at in range(6, LENGTH):
        known[:, at] = np.array(mx.argmax(model(mx.array(known[:, :at]))[:, -1], axis=-1))
    return float(np.mean(np.all(known == ids, axis=1)))


def main(c):
    mx.random.seed(20)
    rng = np.random.default_rng(20)
    lines = rng.permutation(all_sums())
    train, held_out = lines[:9000], lines[9000:]
    steps = c.epochs * len(train) // c.batch
    model = Decoder(c)
    rate = optim.join_schedules([optim.linear_schedule(0.0, c.rate, c.warmup), optim.cosine_decay(c.rate, steps - c.warmup)], [c.warmup])
    optimizer = optim.AdamW(learning_rate=rate, weight_decay=0.01)
    grad_fn = nn.value_and_grad(model, loss_fn)
    for epoch in range(1, c.epochs + 1):
        losses = []
        for rows in rng.permutation(len(train)).reshape(-1, c.batch):
            loss, grads = grad_fn(model, mx.array(train[rows]))
            grads, _ = optim.clip_grad_norm(grads, 1.0)
            optimizer.update(model, grads)
            mx.eval(model.parameters(), optimizer.state)
            losses.append(loss.item())
            if len(losses) % 50 == 0:
                print(f"  batch {len(losses):3d}  loss {np.mean(losses[-50:]):.4f}")
        val = loss_fn(model, mx.array(held_out)).item()
        print(f"epoch {epoch}  loss {np.mean(losses):.4f}  held out {val:.4f}  sums right {solve(model, held_out):.3f}")


main(Config())
