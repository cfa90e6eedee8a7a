import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Baskets(Dataset):
    """Sets of up to eight items; the target is the mean value of the first channel (0 for an empty basket)."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randn(n, 8, 4, generator=g)
        size = torch.randint(0, 9, (n,), generator=g)
        self.mask = torch.arange(8) < size.unsqueeze(1)
        self.x = self.x * self.mask.unsqueeze(-1)
        self.y = self.x[:, :, 0].sum(1) / size.clamp(min=1) * 1.8

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.mask[i], self.y[i]


class SetPool(nn.Module):
    def __init__(self, dim=4, hidden=32):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(dim, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        self.value = nn.Linear(dim, hidden)
        self.out = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, x, mask):
        scores = self.score(x).squeeze(-1)
        scores = scores.masked_fill(~mask, float("-inf"))
        attn = torch.softmax(scores, dim=1)
        pooled = torch.einsum("bn,bnd->bd", attn, self.value(x))
        return self.out(pooled).squeeze(-1)


def main():
    torch.manual_seed(9)
    train_loader = DataLoader(Baskets(1600, 0), batch_size=32, shuffle=True)
    val_loader = DataLoader(Baskets(400, 1), batch_size=200)
    model = SetPool()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    loss_fn = nn.MSELoss()
    for epoch in range(10):
        model.train()
        for x, mask, y in train_loader:
            optimizer.zero_grad()
            loss = loss_fn(model(x, mask), y)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            val = sum(loss_fn(model(x, m), y).item() for x, m, y in val_loader) / len(val_loader)
        print(f"epoch {epoch}: train {loss.item():.4f} val {val:.4f}")


if __name__ == "__main__":
    main()
