import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
        self.fc = nn.Sequential(nn.Linear(256, 64), nn.ReLU())
        self.head = nn.Linear(64, classes)

    def forward(self, x):
        return self.head(self.fc(self.trunk(x)))


def loaders(x, y, low):
    keep = (y < 5) if low else (y >= 5)
    x, y = x[keep], y[keep] - (0 if low else 5)
    order = torch.randperm(len(x))
    x, y = x[order], y[order]
    cut = int(0.8 * len(x))
    train = DataLoader(TensorDataset(x[:cut], y[:cut]), batch_size=32, shuffle=True)
    return train, DataLoader(TensorDataset(x[cut:], y[cut:]), batch_size=64)


def fit(model, train, val, epochs, lr):
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=lr)
    for epoch in range(epochs):
        model.train()
        for x, y in train:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            acc = sum((model(x).argmax(1) == y).sum().item() for x, y in val) / len(val.dataset)
        print(f"epoch {epoch} loss {loss.item():.4f} val acc {acc:.4f}")


if __name__ == "__main__":
    torch.manual_seed(1)
    d = load_digits()
    x = torch.tensor(d.images, dtype=torch.float32).unsqueeze(1) / 8 - 1
    y = torch.tensor(d.target)
    model = Net(5)
    fit(model, *loaders(x, y, low=True), epochs=6, lr=2e-3)
    model.trunk.requires_grad_(False)
    model.head = nn.Linear(64, 5)
    fit(model, *loaders(x, y, low=False), epochs=10, lr=5e-3)
