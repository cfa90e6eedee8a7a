import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

QUANTILES = torch.tensor([0.1, 0.5, 0.9])


def pinball(pred, y):
    err = y.unsqueeze(1) - pred
    return torch.maximum(QUANTILES * err, (QUANTILES - 1) * err).mean()


def heteroscedastic(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 4, generator=g)
    mean = torch.sin(x[:, 0]) + 0.5 * x[:, 1]
    return x, mean + (0.2 + 0.3 * x[:, 2].abs()) * torch.randn(n, generator=g)


def main():
    torch.manual_seed(0)
    x, y = heteroscedastic(2000, 0)
    xv, yv = heteroscedastic(1000, 1)
    loader = DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True)
    model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(12):
        model.train()
        total = 0.0
        for xb, yb in loader:
            loss = pinball(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            q = model(xv)
            cover = ((yv > q[:, 0]) & (yv < q[:, 2])).float().mean().item()
            val = pinball(q, yv).item()
        print(f"epoch {epoch:2d} train {total / len(loader):.4f} val {val:.4f} coverage {cover:.3f}")


if __name__ == "__main__":
    main()
