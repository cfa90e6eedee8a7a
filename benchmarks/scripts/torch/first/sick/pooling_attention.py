import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def needle(n, seed, length=24, dim=8):
    """One position carries a mark in channel 0; the class is the argmax of its channels 4..7."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, length, dim, generator=g)
    where = torch.randint(0, length, (n,), generator=g)
    x[:, :, 0] = -0.5
    x[torch.arange(n), where, 0] = 4.0
    y = x[torch.arange(n), where, 4:].argmax(1)
    return TensorDataset(x, y)


class AttentionPool(nn.Module):
    def __init__(self, dim=8, hidden=48, classes=4):
        super().__init__()
        self.lift = nn.Linear(dim, hidden)
        self.score = nn.Linear(hidden, 1)
        self.value = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, classes)

    def forward(self, x):
        h = self.lift(x)
        weights = torch.softmax(self.score(torch.tanh(h)), dim=0)
        pooled = (weights * self.value(h)).sum(1)
        return self.out(torch.relu(pooled))


def main():
    torch.manual_seed(5)
    train_loader = DataLoader(needle(2000, 0), batch_size=50, shuffle=True)
    val_loader = DataLoader(needle(500, 1), batch_size=50)
    model = AttentionPool()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(12):
        model.train()
        total = 0.0
        for x, y in train_loader:
            opt.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            opt.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            acc = sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader) / 500
        print(f"epoch {epoch:2d} loss {total / len(train_loader):.4f} val acc {acc:.3f}")


if __name__ == "__main__":
    main()
