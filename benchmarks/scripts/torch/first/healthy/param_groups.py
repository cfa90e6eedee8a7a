import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(11)
X, y = make_classification(2400, 20, n_informative=12, n_classes=4, class_sep=1.7, random_state=11)
X = torch.tensor(X, dtype=torch.float32)
X = (X - X[:2000].mean(0)) / X[:2000].std(0)
y = torch.tensor(y)
loader = DataLoader(TensorDataset(X[:2000], y[:2000]), batch_size=50, shuffle=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(20, 48), nn.LayerNorm(48), nn.ReLU(), nn.Dropout(0.1))
        self.head = nn.Linear(48, 4)

    def forward(self, x):
        return self.head(self.body(x))


model = Net()
decay = [p for p in model.parameters() if p.ndim > 1]
plain = [p for p in model.parameters() if p.ndim <= 1]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.05, "lr": 2e-3}, {"params": plain, "weight_decay": 0.0, "lr": 4e-3}]
)
for epoch in range(12):
    model.train()
    total = 0.0
    for xb, yb in loader:
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        out = model(X[2000:])
        val = nn.functional.cross_entropy(out, y[2000:]).item()
        acc = (out.argmax(1) == y[2000:]).float().mean().item()
    print(f"epoch {epoch:2d} train {total / len(loader):.4f} val {val:.4f} acc {acc:.3f}")
