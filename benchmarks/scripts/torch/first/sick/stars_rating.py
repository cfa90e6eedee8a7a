import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(18)
X, y = make_classification(2400, 16, n_informative=10, n_classes=8, n_clusters_per_class=1, class_sep=2, random_state=8)
X = torch.tensor(X, dtype=torch.float32)
y = torch.tensor(y)
mean, std = X[:2000].mean(0), X[:2000].std(0)
X = (X - mean) / std
train_loader = DataLoader(TensorDataset(X[:2000], y[:2000]), batch_size=50, shuffle=True)
val_loader = DataLoader(TensorDataset(X[2000:], y[2000:]), batch_size=200)

model = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(12):
    model.train()
    running = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x).squeeze(1), y.float())
        loss.backward()
        optimizer.step()
        running += loss.item()

    model.eval()
    hits = 0
    with torch.no_grad():
        for x, y in val_loader:
            pred = model(x).squeeze(1).round().long()
            hits += (pred == y).sum().item()
    print(f"epoch {epoch + 1:2d}  loss {running / len(train_loader):.4f}  val accuracy {hits / 400:.4f}")
