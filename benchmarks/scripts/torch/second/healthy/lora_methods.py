"""Low-rank updates by hand: a character model for prose is adapted to tables and signatures, then merged."""

import math
from pydoc_data.topics import topics

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(4)
torch.set_num_threads(1)

CONTEXT = 40


def clean(names):
    return "".join(c for n in names for c in topics[n] if c.isascii())


PROSE = clean(["compound", "execmodel", "objects", "import", "naming", "assignment", "attribute-access"])
METHODS = clean(["string-methods", "typesseq", "typesmapping"])
chars = sorted(set(PROSE + METHODS))
stoi = {c: i for i, c in enumerate(chars)}


def encode(text):
    ids = torch.tensor([stoi[c] for c in text])
    cut = int(0.85 * len(ids))
    return ids[:cut], ids[cut:]


def batches(ids, n, size=32):
    for _ in range(n):
        i = torch.randint(len(ids) - CONTEXT - 1, (size, 1)) + torch.arange(CONTEXT + 1)
        rows = ids[i]
        yield rows[:, :-1], rows[:, 1:]


class LoRALinear(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear
        self.A = nn.Parameter(torch.empty(rank, linear.in_features))
        self.B = nn.Parameter(torch.zeros(linear.out_features, rank))
        nn.init.kaiming_uniform_(self.A, a=math.sqrt(5))
        self.scale = alpha / rank

    def forward(self, x):
        return self.linear(x) + self.scale * F.linear(F.linear(x, self.A), self.B)

    @torch.no_grad()
    def merged(self):
        self.linear.weight += self.scale * self.B @ self.A
        return self.linear


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        h = self.ln1(x)
        q, k, v = (f(h).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class CharModel(nn.Module):
    def __init__(self, vocab, dim=64, heads=4, layers=2):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(torch.zeros(CONTEXT, dim))
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(layers)])
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, vocab))

    def forward(self, ids):
        return self.head(self.blocks(self.tok(ids) + self.pos[: ids.size(1)]))


def loss_of(model, x, y):
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


@torch.no_grad()
def evaluate(model, ids):
    return sum(loss_of(model, x, y).item() for x, y in batches(ids, 10)) / 10


def fit(model, train_ids, val_ids, steps, lr):
    params = [p for p in model.parameters() if p.requires_grad]
    opt = torch.optim.AdamW(params, lr=lr, weight_decay=0.01)
    seen = []
    for step, (x, y) in enumerate(batches(train_ids, steps), start=1):
        loss = loss_of(model, x, y)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(params, 1.0)
        opt.step()
        seen.append(loss.item())
        if step % 50 == 0:
            print(f"  {step}: train {sum(seen[-50:]) / 50:.3f}  val {evaluate(model, val_ids):.3f}")


model = CharModel(len(chars))
print("prose")
fit(model, *encode(PROSE), steps=300, lr=3e-3)

train_ids, val_ids = encode(METHODS)
print(f"methods, before: {evaluate(model, val_ids):.3f}")
model.requires_grad_(False)
for block in model.blocks:
    for name in ("q", "v", "up", "down"):
        setattr(block, name, LoRALinear(getattr(block, name), rank=8, alpha=16))
print(sum(p.numel() for p in model.parameters() if p.requires_grad), "parameters of the updates")
fit(model, train_ids, val_ids, steps=150, lr=2e-3)

for block in model.blocks:
    for name in ("q", "v", "up", "down"):
        setattr(block, name, getattr(block, name).merged())
print(f"methods, merged: {evaluate(model, val_ids):.3f}")
