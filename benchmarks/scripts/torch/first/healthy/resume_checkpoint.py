import os
import tempfile

import torch
import torch.nn as nn
from sklearn.datasets import make_moons
from torch.utils.data import DataLoader, TensorDataset


def make_all():
    model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=6, gamma=0.5)
    return model, optimizer, scheduler


def run(model, optimizer, scheduler, epochs):
    for epoch in epochs:
        model.train()
        total = 0.0
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
            total += loss.item()
        scheduler.step()
        model.eval()
        with torch.no_grad():
            acc = (model(X[1000:]).argmax(1) == y[1000:]).float().mean().item()
        print(f"epoch {epoch:2d} loss {total / len(loader):.4f} val acc {acc:.3f}")


torch.manual_seed(0)
X, y = make_moons(1300, noise=0.15, random_state=0)
X = torch.tensor(X, dtype=torch.float32)
X = (X - X[:1000].mean(0)) / X[:1000].std(0)
y = torch.tensor(y)
loader = DataLoader(TensorDataset(X[:1000], y[:1000]), batch_size=40, shuffle=True)

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "ckpt.pt")
    parts = make_all()
    run(*parts, range(0, 6))
    torch.save([p.state_dict() for p in parts], path)
    parts = make_all()
    for part, state in zip(parts, torch.load(path), strict=True):
        part.load_state_dict(state)
    print("resumed")
    run(*parts, range(6, 14))
