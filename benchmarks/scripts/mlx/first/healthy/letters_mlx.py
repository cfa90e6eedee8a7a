"""A small causal transformer on generated arithmetic."""

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

rng = np.random.default_rng(1)
mx.random.seed(1)
text = "".join(f"{a}+{b}={a + b};" for a, b in rng.integers(0, 20, (4000, 2)))
vocabulary = sorted(set(text))
ids = np.array([vocabulary.index(c) for c in text], dtype=np.int32)
train_ids, val_ids = ids[:-4000], ids[-4000:]
CONTEXT, BATCH, DIMS = 24, 16, 32


class LanguageModel(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.embedding = nn.Embedding(size, DIMS)
        self.pe = nn.Embedding(CONTEXT, DIMS)
        self.transformer = nn.TransformerEncoder(2, DIMS, 2, mlp_dims=64, norm_first=True)
        self.out_proj = nn.Linear(DIMS, size)

    def __call__(self, x):
        length = x.shape[1]
        mask = nn.MultiHeadAttention.create_additive_causal_mask(length)
        h = self.embedding(x) + self.pe(mx.arange(length))
        return self.out_proj(self.transformer(h, mask))


def sample(source):
    starts = rng.integers(0, len(source) - CONTEXT - 1, BATCH)
    windows = np.stack([source[s : s + CONTEXT + 1] for s in starts])
    return mx.array(windows[:, :-1]), mx.array(windows[:, 1:])


def loss_fn(model, x, y):
    return nn.losses.cross_entropy(model(x), y, reduction="mean")


model = LanguageModel(len(vocabulary))
optimizer = optim.AdamW(learning_rate=optim.linear_schedule(1e-5, 3e-3, 50), weight_decay=0.01)
loss_and_grad = nn.value_and_grad(model, loss_fn)
recent = []
for it in range(1, 301):
    loss, grads = loss_and_grad(model, *sample(train_ids))
    grads, norm = optim.clip_grad_norm(grads, 1.0)
    optimizer.update(model, grads)
    mx.eval(model.parameters(), optimizer.state)
    recent.append(loss.item())
    if it % 50 == 0:
        val = np.mean([loss_fn(model, *sample(val_ids)).item() for _ in range(5)])
        print(f"iter {it}: train {np.mean(recent[-50:]):.3f} val {val:.3f} norm {norm.item():.2f}")
