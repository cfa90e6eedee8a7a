import random

import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(7)
torch.manual_seed(7)
SYLLABLES = ["ba", "ke", "mo", "ri", "tu", "la", "sen", "dor", "vi", "pal"]
text = " ".join("".join(random.choices(SYLLABLES, k=random.randint(1, 3))) for _ in range(5000))
chars = sorted(set(text))
ids = torch.tensor([chars.index(c) for c in text])
cut = int(0.9 * len(ids))
train_ids, val_ids = ids[:cut], ids[cut:]
BLOCK, DIM = 24, 32


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.proj = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))
        self.register_buffer("future", torch.triu(torch.ones(BLOCK, BLOCK, dtype=torch.bool), 1))

    def forward(self, x):
        q, k, v = self.qkv(self.ln1(x)).chunk(3, -1)
        n = x.shape[1]
        att = (q @ k.transpose(-2, -1)) / DIM**0.5
        att = att.masked_fill(self.future[:n, :n], float("-inf")).softmax(-1)
        x = x + self.proj(att @ v)
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(len(chars), DIM), nn.Embedding(BLOCK, DIM)
        self.blocks = nn.Sequential(Block(), Block())
        self.ln, self.head = nn.LayerNorm(DIM), nn.Linear(DIM, len(chars))

    def forward(self, x):
        return self.head(self.ln(self.blocks(self.tok(x) + self.pos(torch.arange(x.shape[1])))))


def loss_on(model, x, y):
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def batch(data, n=24):
    starts = torch.randint(0, len(data) - BLOCK - 1, (n,))
    return (torch.stack([data[s + o : s + o + BLOCK] for s in starts]) for o in (0, 1))


model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
k = (len(val_ids) - 1) // BLOCK
vx, vy = val_ids[: k * BLOCK].view(k, BLOCK), val_ids[1 : k * BLOCK + 1].view(k, BLOCK)
for it in range(1, 501):
    model.train()
    loss = loss_on(model, *batch(train_ids))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if it % 100 == 0:
        model.eval()
        with torch.no_grad():
            print(f"iter {it}: train {loss.item():.4f} val {loss_on(model, vx, vy).item():.4f}")
