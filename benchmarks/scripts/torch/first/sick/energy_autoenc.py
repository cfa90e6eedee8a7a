import math

import torch
from torch import nn
from torch.utils.data import DataLoader


class SparseCoder(nn.Module):
    """Dictionary of rectified features with a sparsity margin."""

    def __init__(self, n_in=32, n_features=64, margin=3.0):
        super().__init__()
        self.up = nn.Linear(n_in, n_features)
        self.down = nn.Linear(n_features, n_in)
        self.margin = margin

    def forward(self, x):
        h = torch.relu(self.up(x) - self.margin)
        return self.down(h)


def waves(n, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.linspace(0, 2 * math.pi, 32)
    a = torch.randn(n, 3, generator=g)
    x = sum(a[:, k : k + 1] * torch.sin((k + 1) * t) for k in range(3)) / 1.22
    return x + 0.05 * torch.randn(n, 32, generator=g)


def main():
    torch.manual_seed(6)
    train, val = waves(2000, 0), waves(400, 1)
    loader = DataLoader(train, batch_size=50, shuffle=True)
    model = SparseCoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    loss_fn = nn.MSELoss()
    for epoch in range(12):
        model.train()
        total = 0.0
        for x in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(x), x)
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            val_loss = loss_fn(model(val), val).item()
        print(f"epoch {epoch:2d} reconstruction {total / len(loader):.4f} val {val_loss:.4f}")


if __name__ == "__main__":
    main()
