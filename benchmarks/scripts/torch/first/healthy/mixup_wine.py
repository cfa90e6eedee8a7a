import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_classification
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(17)
K = 4
X, y = make_classification(2000, 16, n_informative=10, n_classes=K, class_sep=1.8, random_state=17)
X = torch.tensor(X, dtype=torch.float32)
X = (X - X[:1600].mean(0)) / X[:1600].std(0)
y = torch.tensor(y)
loader = DataLoader(TensorDataset(X[:1600], y[:1600]), batch_size=40, shuffle=True)
beta = torch.distributions.Beta(0.3, 0.3)


def mixup(x, y):
    lam = beta.sample((len(x), 1))
    perm = torch.randperm(len(x))
    t = F.one_hot(y, K).float()
    return lam * x + (1 - lam) * x[perm], lam * t + (1 - lam) * t[perm]


model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, K))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(12):
    model.train()
    total = 0.0
    for xb, yb in loader:
        xm, tm = mixup(xb, yb)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(xm), tm)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        out = model(X[1600:])
        val = F.cross_entropy(out, y[1600:]).item()
        acc = (out.argmax(1) == y[1600:]).float().mean().item()
    print(f"epoch {epoch + 1:2d} mixup loss {total / len(loader):.4f} val loss {val:.4f} acc {acc:.3f}")
