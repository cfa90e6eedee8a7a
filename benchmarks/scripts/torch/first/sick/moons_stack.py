import torch
import torch.nn as nn
from sklearn.datasets import make_circles
from torch.utils.data import DataLoader, TensorDataset


def mlp(n_in, width, depth, n_out):
    layers, d = [], n_in
    for _ in range(depth):
        layers += [nn.Linear(d, width)]
        d = width
    return nn.Sequential(*layers, nn.Linear(d, n_out))


torch.manual_seed(0)
X, y = make_circles(n_samples=1500, noise=0.08, factor=0.5, random_state=0)
X = torch.tensor(X, dtype=torch.float32)
X = (X - X[:1200].mean(0)) / X[:1200].std(0)
y = torch.tensor(y)
train_loader = DataLoader(TensorDataset(X[:1200], y[:1200]), batch_size=32, shuffle=True)
X_val, y_val = X[1200:], y[1200:]

model = mlp(2, 32, 3, 2)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(15):
    model.train()
    total = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        acc = (model(X_val).argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch + 1:2d}: loss {total / len(train_loader):.4f}, val acc {acc:.3f}")
