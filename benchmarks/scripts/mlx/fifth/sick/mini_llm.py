"""A small decoder-only language model in MLX."""

from pydoc_data.topics import topics

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

mx.random.seed(0)
rng = np.random.default_rng(0)

CONTEXT, BATCH = 32, 16

text = "".join(c for c in "".join(topics[k] for k in sorted(topics)) if c.isascii())[:100_000]
chars = sorted(set(text))
ids = np.array([chars.index(c) for c in text], dtype=np.int32)
cut = int(0.9 * len(ids))


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)
        self.rope = nn.RoPE(dim // heads)

    def __call__(self, x, mask):
        B, T, D = x.shape
        q, k, v = (
            z.reshape(B, T, self.heads, D // self.heads).transpose(0, 2, 1, 3)
            for z in mx.split(self.qkv(x), 3, axis=-1)
        )
        q, k = self.rope(q), self.rope(k)
        scores = (q @ k.transpose(0, 1, 3, 2)) * (D // self.heads) ** -0.5 + mask
        y = mx.softmax(scores, axis=-1) @ v
        return self.out(y.transpose(0, 2, 1, 3).reshape(B, T, D))


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1 = nn.RMSNorm(dim)
        self.attention = Attention(dim, heads)
        self.norm2 = nn.RMSNorm(dim)
        self.gate = nn.Linear(dim, 2 * dim, bias=False)
        self.up = nn.Linear(dim, 2 * dim, bias=False)
        self.down = nn.Linear(2 * dim, dim, bias=False)

    def __call__(self, x, mask):
        x = x + self.attention(self.norm1(x), mask)
        h = self.norm2(x)
        return x + self.down(nn.silu(self.gate(h)) * self.up(h))


class MiniLLM(nn.Module):
    def __init__(self, vocab, dim=48, heads=4, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.layers = [Layer(dim, heads) for _ in range(layers)]
        self.norm = nn.RMSNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)

    def __call__(self, ids):
        mask = nn.MultiHeadAttention.create_additive_causal_mask(ids.shape[1])
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(self.norm(x))


def get_batch(source):
    starts = rng.integers(0, len(source) - CONTEXT - 1, BATCH)
    return mx.array(source[starts[:, None] + np.arange(CONTEXT)])


def loss_fn(model, batch):
    logits = model(batch)
    return nn.losses.cross_entropy(logits, batch, reduction="mean")


def generate(model, prompt, n=60):
    ids = [chars.index(c) for c in prompt]
    for _ in range(n):
        logits = model(mx.array([ids[-CONTEXT:]]))[:, -1]
        ids.append(mx.random.categorical(logits).item())
    return "".join(chars[i] for i in ids)


model = MiniLLM(len(chars))
mx.eval(model.parameters())
optimizer = optim.AdamW(learning_rate=2e-3, weight_decay=0.01)
loss_and_grad = nn.value_and_grad(model, loss_fn)
losses = []
for step in range(1, 301):
    loss, grads = loss_and_grad(model, get_batch(ids[:cut]))
    grads, _ = optim.clip_grad_norm(grads, 1.0)
    optimizer.update(model, grads)
    mx.eval(model.parameters(), optimizer.state)
    losses.append(loss.item())
    if step % 60 == 0:
        val = np.mean([loss_fn(model, get_batch(ids[cut:])).item() for _ in range(5)])
        print(f"step {step}: train {np.mean(losses[-60:]):.4f}  val {val:.4f}")
print(generate(model, "The "))
