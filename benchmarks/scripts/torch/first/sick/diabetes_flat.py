import torch
import torch.nn as nn
from sklearn.datasets import make_friedman1
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
X, y = make_friedman1(n_samples=1500, n_features=8, noise=0.5, random_state=1)
X = torch.tensor(X * 3.46 - 1.73, dtype=torch.float32)
y = torch.tensor(y, dtype=torch.float32)
y = (y - y[:1200].mean()) / y[:1200].std()
train_loader = DataLoader(TensorDataset(X[:1200], y[:1200]), batch_size=40, shuffle=True)
X_val, y_val = X[1200:], y[1200:]

model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(25):
    model.train()
    total = 0.0
    for xb, yb in train_loader:
        pred = model(xb)
        loss = ((pred - yb) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        err = model(X_val).squeeze(1) - y_val
        r2 = 1 - err.pow(2).mean() / y_val.var()
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1} loss {total / len(train_loader):.4f} val R2 {r2:.3f}")
