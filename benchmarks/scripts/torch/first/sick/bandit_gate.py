import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Expert(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.lin = nn.Linear(d, 1)

    def forward(self, x):
        return self.lin(x)


class GatedPair(nn.Module):
    """Two linear experts and a gate that mixes them."""

    def __init__(self, d=6):
        super().__init__()
        self.first = Expert(d)
        self.second = Expert(d)
        self.gate = nn.Sequential(nn.Linear(d, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x):
        g = torch.softmax(self.gate(x), dim=-1)
        return (g * self.first(x) + (1 - g) * self.second(x)).squeeze(-1)


def two_regimes(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 6, generator=g)
    a = torch.tensor([1.0, -0.8, 0.5, 0.0, 0.3, 0.2])
    b = torch.tensor([-0.9, 0.6, 0.4, 0.7, -0.2, 0.5])
    y = torch.where(x[:, 5] > 0, x @ a, x @ b) + 0.05 * torch.randn(n, generator=g)
    return TensorDataset(x, y / 1.4)


def main():
    torch.manual_seed(0)
    train_loader = DataLoader(two_regimes(1600, 1), batch_size=32, shuffle=True)
    val_loader = DataLoader(two_regimes(400, 2), batch_size=200)
    model = GatedPair()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(20):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            val = sum(nn.functional.mse_loss(model(x), y).item() for x, y in val_loader) / len(val_loader)
        if epoch % 4 == 3:
            print(f"epoch {epoch + 1}: train {loss.item():.4f} val mse {val:.4f}")


if __name__ == "__main__":
    main()
