import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

LAGS = 10


def make_series(n, seed):
    g = torch.Generator().manual_seed(seed)
    noise = torch.randn(n, generator=g)
    s, level = torch.zeros(n), 0.0
    for t in range(n):
        level = 0.7 * level + noise[t].item() * 0.6
        s[t] = level + 0.8 * math.sin(2 * math.pi * t / 20)
    return s / 1.0


def lagged(series):
    """Rows of the last LAGS values, the target is the value that follows."""
    lags = [series[LAGS - k : len(series) - k] for k in range(LAGS)]
    return torch.stack(lags, dim=1), series[LAGS:]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(LAGS, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


def main():
    torch.manual_seed(0)
    x, y = lagged(make_series(2000, 0))
    x_val, y_val = lagged(make_series(500, 1))
    loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
    model, loss_fn = Model(), nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(12):
        model.train()
        total = 0.0
        for xb, yb in loader:
            loss = loss_fn(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            val = loss_fn(model(x_val), y_val).item()
        print(f"epoch {epoch:2d} train {total / len(loader):.4f} val {val:.4f}")


if __name__ == "__main__":
    main()
