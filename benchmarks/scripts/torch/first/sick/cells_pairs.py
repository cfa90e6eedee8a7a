import torch
import torch.nn as nn
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

torch.manual_seed(19)
X, y = load_breast_cancer(return_X_y=True)
X = torch.tensor(StandardScaler().fit_transform(X), dtype=torch.float32)
y = torch.tensor(y, dtype=torch.float32)
perm = torch.randperm(len(X))
X = X[perm]
X_train, y_train, X_val, y_val = X[:450], y[:450], X[450:], y[450:]

model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-3)
bce = nn.BCEWithLogitsLoss()


def batches(X, y, size=30):
    for idx in torch.randperm(len(X)).split(size):
        yield X[idx], y[idx]


for epoch in range(20):
    model.train()
    losses = []
    for xb, yb in batches(X_train, y_train):
        optimizer.zero_grad()
        loss = bce(model(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        logits = model(X_val).squeeze(1)
        acc = ((logits > 0).float() == y_val).float().mean().item()
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1}: loss {sum(losses) / len(losses):.4f} val acc {acc:.3f}")
