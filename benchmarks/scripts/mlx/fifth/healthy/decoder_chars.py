"""Characters of Python's help pages, learned by a two-layer transformer in MLX."""

from pydoc_data.topics import topics

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

CONTEXT = 32


class Decoder(nn.Module):
    def __init__(self, vocab, dim=48, heads=4, layers=2):
        super().__init__()
        self.tokens = nn.Embedding(vocab, dim)
        self.places = nn.Embedding(CONTEXT, dim)
        self.stack = nn.TransformerEncoder(layers, dim, heads, mlp_dims=4 * dim, norm_first=True, dropout=0.0)
        self.head = nn.Linear(dim, vocab, bias=False)

    def __call__(self, ids):
        T = ids.shape[1]
        mask = nn.MultiHeadAttention.create_additive_causal_mask(T)
        return self.head(self.stack(self.tokens(ids) + self.places(mx.arange(T)), mask))


def loss_fn(model, x, y):
    return nn.losses.cross_entropy(model(x), y, reduction="mean")


class Text:
    def __init__(self, limit, seed):
        text = "".join(c for c in "".join(topics[k] for k in sorted(topics)) if c.isascii())[:limit]
        self.chars = sorted(set(text))
        ids = np.array([self.chars.index(c) for c in text], dtype=np.int32)
        cut = int(0.9 * len(ids))
        self.parts = {"train": ids[:cut], "val": ids[cut:]}
        self.rng = np.random.default_rng(seed)

    def batch(self, part, size=24):
        ids = self.parts[part]
        starts = self.rng.integers(0, len(ids) - CONTEXT - 1, size)
        rows = ids[starts[:, None] + np.arange(CONTEXT + 1)]
        return mx.array(rows[:, :-1]), mx.array(rows[:, 1:])


def main(steps=320):
    mx.random.seed(3)
    text = Text(100_000, seed=3)
    model = Decoder(len(text.chars))
    mx.eval(model.parameters())
    warmup = optim.linear_schedule(1e-5, 2e-3, 30)
    schedule = optim.join_schedules([warmup, optim.cosine_decay(2e-3, steps - 30, 1e-4)], [30])
    optimizer = optim.AdamW(learning_rate=schedule, weight_decay=0.01)
    loss_and_grad = nn.value_and_grad(model, loss_fn)
    losses = []
    for step in range(1, steps + 1):
        loss, grads = loss_and_grad(model, *text.batch("train"))
        grads, _ = optim.clip_grad_norm(grads, 1.0)
        optimizer.update(model, grads)
        mx.eval(model.parameters(), optimizer.state)
        losses.append(loss.item())
        if step % 80 == 0:
            model.eval()
            val = np.mean([loss_fn(model, *text.batch("val")).item() for _ in range(8)])
            model.train()
            print(f"step {step}: train {np.mean(losses[-80:]):.3f}  val {val:.3f}")


if __name__ == "__main__":
    main()
