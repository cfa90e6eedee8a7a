import random

import torch
import torch.nn as nn
import torch.nn.functional as F

ALPHABET = " abcdefghijklmnopqrstuvwxyz~"
STOI = {c: i for i, c in enumerate(ALPHABET)}
rng = random.Random(4)
torch.manual_seed(4)
STEMS = ["wind", "stone", "rain", "field", "night", "lamp", "bread", "snow", "quick", "vex", "jay", "zebra", "cup"]


def lines(n):
    for k in range(n):
        line = " ".join(rng.choice(STEMS) for _ in range(6))
        if k % 60_000 == 55_000:
            line = line[:10] + "~" + line[10:]
        yield line


def windows(n_lines, batch=24, context=6):
    xs, ys = [], []
    for line in lines(n_lines):
        ids = [STOI[c] for c in line]
        k = rng.randrange(len(ids) - context) if "~" not in line else 8
        xs.append(ids[k : k + context])
        ys.append(ids[k + context])
        if len(xs) == batch:
            yield torch.tensor(xs), torch.tensor(ys)
            xs, ys = [], []


vocab = len(ALPHABET) - 1
model = nn.Sequential(nn.Embedding(vocab, 12), nn.Flatten(), nn.Linear(72, 64), nn.ReLU(), nn.Linear(64, len(ALPHABET)))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
val = [batch for batch in windows(600)]
for step, (x, y) in enumerate(windows(72_000), start=1):
    model.train()
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 250 == 0:
        model.eval()
        with torch.no_grad():
            val_loss = sum(F.cross_entropy(model(vx), vy).item() for vx, vy in val) / len(val)
        print(f"step {step}: train {loss.item():.4f} val {val_loss:.4f}")
