import torch
import torch.nn as nn
from sklearn.datasets import make_moons
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(12)
X, y = make_moons(n_samples=1200, noise=0.2, random_state=12)
X = torch.tensor(X, dtype=torch.float32)
X = (X - X[:900].mean(0)) / X[:900].std(0)
y = torch.tensor(y)
train_set = TensorDataset(X[:900], y[:900])


def train_loader():
    return DataLoader(train_set, batch_size=32, shuffle=True, generator=torch.Generator().manual_seed(0))


model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()

for step in range(1, 601):
    model.train()
    xb, yb = next(iter(train_loader()))
    optimizer.zero_grad()
    loss = criterion(model(xb), yb)
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        model.eval()
        with torch.no_grad():
            out = model(X[900:])
            val_loss = criterion(out, y[900:]).item()
            acc = (out.argmax(1) == y[900:]).float().mean().item()
        print(f"step {step}: train {loss.item():.4f} val {val_loss:.4f} acc {acc:.3f}")
