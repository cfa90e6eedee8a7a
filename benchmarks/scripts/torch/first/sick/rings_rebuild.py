import torch
import torch.nn as nn
from sklearn.datasets import make_circles
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(31)
X, y = make_circles(n_samples=800, noise=0.12, factor=0.6, random_state=31)
X = torch.tensor(X, dtype=torch.float32)
X = (X - X.mean(0)) / X.std(0)
y = torch.tensor(y, dtype=torch.float32)
train_dl = DataLoader(TensorDataset(X[:600], y[:600]), batch_size=200, shuffle=True)
net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
bce = nn.BCEWithLogitsLoss()


def report(epoch, loss):
    net.eval()
    with torch.no_grad():
        out = net(X[600:]).squeeze(1)
        val_loss = bce(out, y[600:]).item()
        acc = ((out > 0).float() == y[600:]).float().mean().item()
    print(f"epoch {epoch + 1:3d}: loss {loss:.4f} val loss {val_loss:.4f} val acc {acc:.3f}")


for epoch in range(60):
    optimizer = torch.optim.Adam(net.parameters(), lr=0.03, betas=(0.9, 0.999))
    net.train()
    losses = []
    for xb, yb in train_dl:
        optimizer.zero_grad()
        loss = bce(net(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if epoch % 10 == 9:
        report(epoch, sum(losses) / len(losses))
