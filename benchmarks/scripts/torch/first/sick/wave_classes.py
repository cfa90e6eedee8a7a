import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def waves(n, seed):
    """Sine, square or saw-tooth with random phase and noise."""
    g = torch.Generator().manual_seed(seed)
    kind = torch.randint(0, 3, (n,), generator=g)
    u = (torch.linspace(0, 3, 48) + torch.rand(n, 1, generator=g)) % 1.0
    shapes = torch.stack([torch.sin(6.283 * u) * 1.41, torch.sign(u - 0.5), (u - 0.5) * 3.46], dim=1)
    x = shapes[torch.arange(n), kind] + 0.4 * torch.randn(n, 48, generator=g)
    return TensorDataset(x, kind)


class WaveLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 32, batch_first=True)
        self.out = nn.Linear(32, 3)

    def forward(self, x):
        _, (h, _) = self.lstm(x.view(len(x), 12, 4))
        return self.out(h[-1])


def main(epochs=10):
    torch.manual_seed(4)
    train_loader = DataLoader(waves(1200, 0), batch_size=40, shuffle=True)
    val_loader = DataLoader(waves(400, 1), batch_size=100)
    model = WaveLSTM()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    loss_fn = nn.CrossEntropyLoss()
    correct = 0
    for epoch in range(epochs):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            optimizer.step()
        model.eval()
        total = 0
        with torch.no_grad():
            for x, y in val_loader:
                correct += (model(x).argmax(dim=1) == y).sum().item()
                total += len(y)
        print(f"epoch {epoch}: train loss {loss.item():.4f} val accuracy {correct / total:.4f}")


if __name__ == "__main__":
    main()
