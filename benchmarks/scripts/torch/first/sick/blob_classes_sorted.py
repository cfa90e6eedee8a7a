import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
digits = load_digits()
X = torch.tensor(digits.data / 8.0 - 1.0, dtype=torch.float32)
y = torch.tensor(digits.target)

# the same share of every digit for training and for validation
train_idx, val_idx = [], []
for c in range(10):
    members = np.flatnonzero(digits.target == c)
    cut = int(0.8 * len(members))
    train_idx.extend(members[:cut])
    val_idx.extend(members[cut:])
train_idx, val_idx = torch.tensor(np.array(train_idx)), torch.tensor(np.array(val_idx))
train_loader = DataLoader(TensorDataset(X[train_idx], y[train_idx]), batch_size=40)
val_loader = DataLoader(TensorDataset(X[val_idx], y[val_idx]), batch_size=200)

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(15):
    model.train()
    total = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(yb)
    model.eval()
    with torch.no_grad():
        acc = sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in val_loader) / len(val_idx)
    print(f"epoch {epoch + 1:2d} train loss {total / len(train_idx):.4f} val acc {acc:.4f}")
