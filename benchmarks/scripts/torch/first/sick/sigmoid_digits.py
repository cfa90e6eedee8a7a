import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

cfg = {"width": 48, "depth": 10, "lr": 1e-3, "batch_size": 48, "epochs": 16}


def build(cfg):
    layers, d = [], 64
    for _ in range(cfg["depth"]):
        layers += [nn.Linear(d, cfg["width"]), nn.Sigmoid()]
        d = cfg["width"]
    return nn.Sequential(*layers, nn.Linear(d, 10))


def evaluate(model, X, y):
    model.eval()
    with torch.no_grad():
        out = model(X)
    return nn.functional.cross_entropy(out, y).item(), (out.argmax(1) == y).float().mean().item()


torch.manual_seed(24)
digits = load_digits()
X = torch.tensor((digits.data / 16 - 0.305) / 0.376, dtype=torch.float32)
y = torch.tensor(digits.target)
order = torch.randperm(len(X))
X, y = X[order], y[order]
loader = DataLoader(TensorDataset(X[:1440], y[:1440]), batch_size=cfg["batch_size"], shuffle=True)
model = build(cfg)
optimizer = torch.optim.Adam(model.parameters(), lr=cfg["lr"])
for epoch in range(cfg["epochs"]):
    model.train()
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
    val_loss, val_acc = evaluate(model, X[1440:], y[1440:])
    print(f"epoch {epoch + 1}: train {loss.item():.4f} val {val_loss:.4f} acc {val_acc:.3f}")
