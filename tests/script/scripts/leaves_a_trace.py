"""Trains and measures, and prints at its very end all that a watch must leave alone."""

import atexit
import hashlib
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0), random.seed(0), np.random.seed(0)
data = TensorDataset(torch.randn(256, 8), torch.randint(0, 3, (256,)))
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)


def tell() -> None:
    weights = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    drawn = torch.rand(4).tolist(), random.random(), np.random.random()
    print(hashlib.sha256(weights).hexdigest(), drawn, model.training, [p.grad is None for p in model.parameters()])


atexit.register(tell)
for _ in range(6):
    model.train()
    for x, y in DataLoader(data, batch_size=32, shuffle=True, num_workers=1):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(data.tensors[0]).argmax(1) == data.tensors[1]).float().mean().item()
tell()
