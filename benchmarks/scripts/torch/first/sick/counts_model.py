import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class CountNet(nn.Module):
    def __init__(self, n_in):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_in, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, x):
        return nn.functional.softplus(self.body(x).squeeze(-1) + 2.0)


def relative_squared_error(rate, y):
    rel = (rate - y) / y
    return (rel**2).mean()


def make_counts(n=2000, seed=0):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 6, generator=g)
    lam = torch.exp(1.8 + 0.7 * x[:, 0] - 0.4 * x[:, 1] * x[:, 2])
    return TensorDataset(x, torch.poisson(lam, generator=g))


def main():
    torch.manual_seed(0)
    train, val = random_split(make_counts(), [1600, 400])
    train_loader = DataLoader(train, batch_size=40, shuffle=True)
    val_loader = DataLoader(val, batch_size=200)
    model = CountNet(6)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(12):
        model.train()
        total = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = relative_squared_error(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            val = sum(relative_squared_error(model(x), y).item() for x, y in val_loader) / len(val_loader)
        print(f"epoch {epoch:2d} train {total / len(train_loader):.4f} val {val:.4f}")


if __name__ == "__main__":
    main()
