import os
import tempfile

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


def build(hidden):
    return nn.Sequential(nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, 10))


def fit(model, epochs, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            acc = (model(X[1500:]).argmax(1) == Y[1500:]).float().mean().item()
        print(f"  epoch {epoch}: loss {loss.item():.4f} val acc {acc:.4f}")


torch.manual_seed(0)
bunch = load_digits()
order = torch.randperm(len(bunch.data))
X = torch.tensor(bunch.data, dtype=torch.float32)[order] / 8 - 1
Y = torch.tensor(bunch.target)[order]
train_loader = DataLoader(TensorDataset(X[:1500], Y[:1500]), batch_size=50, shuffle=True)

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "stage1.pt")
    print("stage 1")
    model = build(hidden=48)
    fit(model, epochs=5, lr=2e-3)
    torch.save(model.state_dict(), path)
    print("stage 2")
    model = build(hidden=64)
    model.load_state_dict(torch.load(path))
    fit(model, epochs=5, lr=5e-4)
