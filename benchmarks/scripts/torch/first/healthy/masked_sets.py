import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def sets(n, seed, size=10, dim=3):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, size, dim, generator=g)
    count = torch.randint(1, size + 1, (n,), generator=g)
    mask = torch.arange(size) < count.unsqueeze(1)
    y = x[:, :, 0].masked_fill(~mask, float("-inf")).max(1).values
    y = (y - 1.0) / 0.85
    return TensorDataset(x * mask.unsqueeze(-1), mask, y)


class MaxLike(nn.Module):
    def __init__(self, dim=3, hidden=32):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU())
        self.att = nn.Linear(hidden, 4)
        self.rho = nn.Sequential(nn.Linear(4 * hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, x, mask):
        h = self.phi(x)
        a = self.att(h).masked_fill(~mask.unsqueeze(-1), float("-inf")).softmax(dim=1)
        pooled = torch.einsum("bnk,bnh->bkh", a, h).flatten(1)
        return self.rho(pooled).squeeze(-1)


def main():
    torch.manual_seed(1)
    train = DataLoader(sets(2000, 0), batch_size=40, shuffle=True)
    val = DataLoader(sets(500, 1), batch_size=250)
    model = MaxLike()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    mse = nn.MSELoss()
    for epoch in range(10):
        model.train()
        total = 0.0
        for x, m, y in train:
            opt.zero_grad()
            loss = mse(model(x, m), y)
            loss.backward()
            opt.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            v = sum(mse(model(x, m), y).item() for x, m, y in val) / len(val)
        print(f"epoch {epoch}: train {total / len(train):.4f} val {v:.4f}")


if __name__ == "__main__":
    main()
