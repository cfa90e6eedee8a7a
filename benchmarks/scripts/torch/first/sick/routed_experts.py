import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from torch.utils.data import DataLoader, TensorDataset


class MixtureOfExperts(nn.Module):
    def __init__(self, d, classes, experts=4, sharpness=45.0):
        super().__init__()
        self.router = nn.Linear(d, experts)
        self.experts = nn.ModuleList([nn.Linear(d, classes) for _ in range(experts)])
        self.sharpness = sharpness

    def forward(self, x):
        scores = self.router(x) * self.sharpness
        w = torch.exp(scores)
        w = w / w.sum(dim=1, keepdim=True)
        out = torch.stack([e(x) for e in self.experts], dim=1)
        return (w.unsqueeze(-1) * out).sum(dim=1)


def main():
    torch.manual_seed(44)
    X, y = make_classification(2000, 12, n_informative=9, n_classes=4, class_sep=1.5, random_state=44)
    X = torch.tensor(X, dtype=torch.float32)
    X = (X - X[:1600].mean(0)) / X[:1600].std(0)
    y = torch.tensor(y)
    loader = DataLoader(TensorDataset(X[:1600], y[:1600]), batch_size=40, shuffle=True)
    model = MixtureOfExperts(12, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(15):
        model.train()
        total = 0.0
        for xb, yb in loader:
            loss = nn.functional.cross_entropy(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            acc = (model(X[1600:]).argmax(1) == y[1600:]).float().mean().item()
        print(f"epoch {epoch:2d}: loss {total / len(loader):.4f} val acc {acc:.3f}")


if __name__ == "__main__":
    main()
