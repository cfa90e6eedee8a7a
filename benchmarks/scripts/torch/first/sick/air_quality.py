import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(3)
torch.manual_seed(3)
n = 2000
table = rng.normal(size=(n, 7)) * np.array([1.0, 4.0, 0.5, 2.0, 1.5, 3.0, 1.0]) + 5.0
ozone = 0.8 * (table[:, 0] - 5) - 0.15 * (table[:, 1] - 5) * (table[:, 2] - 5) + 0.2 * rng.normal(size=n)
table[rng.integers(0, n, 25), 4] = np.nan
features = torch.tensor(table, dtype=torch.float32)
target = torch.tensor((ozone - ozone.mean()) / ozone.std(), dtype=torch.float32)
mean = torch.tensor(np.nanmean(table[:1600], axis=0), dtype=torch.float32)
std = torch.tensor(np.nanstd(table[:1600], axis=0), dtype=torch.float32)
features = (features - mean) / std
train_loader = DataLoader(TensorDataset(features[:1600], target[:1600]), batch_size=40, shuffle=True)
val_loader = DataLoader(TensorDataset(features[1600:], target[1600:]), batch_size=200)

model = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
loss_fn = nn.MSELoss()
for epoch in range(12):
    model.train()
    total = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x).squeeze(1), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        val = sum(loss_fn(model(x).squeeze(1), y).item() for x, y in val_loader) / len(val_loader)
    print(f"epoch {epoch + 1:2d} train {total / len(train_loader):.4f} val {val:.4f}")
