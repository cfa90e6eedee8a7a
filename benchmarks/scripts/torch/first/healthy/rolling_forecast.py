import argparse
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    def __init__(self, series, context, horizon):
        self.series, self.context, self.horizon = series, context, horizon

    def __len__(self):
        return len(self.series) - self.context - self.horizon + 1

    def __getitem__(self, i):
        mid = i + self.context
        return self.series[i:mid], self.series[mid : mid + self.horizon]


def make_series(n):
    t = torch.arange(n).float()
    s = torch.sin(2 * math.pi * t / 24) + 0.5 * torch.sin(2 * math.pi * t / 168 * 5) + 0.15 * torch.randn(n)
    return s


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--context", type=int, default=36)
    p.add_argument("--horizon", type=int, default=6)
    p.add_argument("--epochs", type=int, default=10)
    a = p.parse_args()
    torch.manual_seed(2)
    series = make_series(2600)
    cut = 2000
    series = (series - series[:cut].mean()) / series[:cut].std()
    train = DataLoader(Windows(series[:cut], a.context, a.horizon), batch_size=40, shuffle=True)
    val = DataLoader(Windows(series[cut:], a.context, a.horizon), batch_size=200)
    model = nn.Sequential(nn.Linear(a.context, 48), nn.ReLU(), nn.Linear(48, a.horizon))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    loss_fn = nn.HuberLoss()
    for epoch in range(a.epochs):
        model.train()
        total = 0.0
        for x, y in train:
            loss = loss_fn(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            mae = sum((model(x) - y).abs().mean().item() for x, y in val) / len(val)
            naive = sum((x[:, -1:] - y).abs().mean().item() for x, y in val) / len(val)
        print(f"epoch {epoch} train {total / len(train):.4f} val MAE {mae:.4f} (naive {naive:.4f})")


if __name__ == "__main__":
    main()
