import torch
from sklearn.datasets import make_regression
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCH = 48


class SiteModel(nn.Module):
    """Regression on the readings and a learned description of the site."""

    def __init__(self, n_in, dim=4):
        super().__init__()
        self.site = nn.Parameter(torch.randn(1, dim) * 0.1)
        self.net = nn.Sequential(nn.Linear(n_in + dim, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        site = self.site.expand(BATCH, -1)
        return self.net(torch.cat([x, site], dim=1)).squeeze(-1)


def main():
    torch.manual_seed(0)
    X, y = make_regression(1000, 9, n_informative=6, noise=8.0, random_state=1)
    X, y = torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    y = (y - y[:800].mean()) / y[:800].std()
    loader = DataLoader(TensorDataset(X[:800], y[:800]), batch_size=BATCH, shuffle=True)
    model = SiteModel(9)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(12):
        model.train()
        total = 0.0
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(xb), yb)
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            val = nn.functional.mse_loss(model(X[800:]), y[800:]).item()
        print(f"epoch {epoch}: train {total / len(loader):.4f} val {val:.4f}")


if __name__ == "__main__":
    main()
