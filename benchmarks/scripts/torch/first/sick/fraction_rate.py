import torch
import torch.nn as nn
from sklearn.datasets import make_blobs
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(25)
X, y = make_blobs(1200, centers=5, n_features=5, cluster_std=2.5, random_state=25)
X = torch.tensor(X, dtype=torch.float32)
X = (X - X[:1000].mean(0)) / X[:1000].std(0)
y = torch.tensor(y)
batch_size = 50
train_loader = DataLoader(TensorDataset(X[:1000], y[:1000]), batch_size=batch_size, shuffle=True)

# scale the base rate of batch 256 down to our batch
base, scale = 1, 256 // batch_size * 4
lr = base // scale
model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)

for epoch in range(10):
    model.train()
    total = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        acc = (model(X[1000:]).argmax(1) == y[1000:]).float().mean().item()
    print(f"epoch {epoch + 1:2d}: loss {total / len(train_loader):.4f}, val acc {acc:.3f}")
