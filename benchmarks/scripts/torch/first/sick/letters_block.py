import random

import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(1337)
torch.manual_seed(1337)
syllables = ["ka", "mi", "to", "re", "su", "na", "lo", "vi", "da", "pe"]
text = "".join(random.choice(syllables) + random.choice(["", "", " "]) for _ in range(8000))
chars = sorted(set(text))
encode = {c: i for i, c in enumerate(chars)}
ids = torch.tensor([encode[c] for c in text])
n = int(0.9 * len(ids))
splits = {"train": ids[:n], "val": ids[n:]}
block, batch_size, dim = 16, 24, 32


def get_batch(split):
    data = splits[split]
    gen = torch.Generator().manual_seed(1337)
    starts = torch.randint(0, len(data) - block - 1, (batch_size,), generator=gen)
    x = torch.stack([data[s : s + block] for s in starts])
    y = torch.stack([data[s + 1 : s + block + 1] for s in starts])
    return x, y


class TinyGPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(len(chars), dim)
        self.pos = nn.Embedding(block, dim)
        self.attn = nn.MultiheadAttention(dim, 4, batch_first=True)
        self.ff = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, len(chars))
        self.register_buffer("mask", torch.triu(torch.ones(block, block, dtype=torch.bool), 1))

    def forward(self, x):
        h = self.tok(x) + self.pos(torch.arange(x.shape[1]))
        n = self.norm(h)
        h = h + self.attn(n, n, n, attn_mask=self.mask, need_weights=False)[0]
        return self.head(h + self.ff(h))


@torch.no_grad()
def val_loss(model):
    model.eval()
    v = splits["val"]
    k = (len(v) - 1) // block
    x, y = v[: k * block].view(k, block), v[1 : k * block + 1].view(k, block)
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item()


model = TinyGPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for it in range(500):
    model.train()
    x, y = get_batch("train")
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if it % 100 == 99:
        print(f"iter {it + 1}: train loss {loss.item():.4f}, val loss {val_loss(model):.4f}")
