import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class MachineLog(Dataset):
    """Sensor rows with the machine's state; the first row of a log is the self test and is skipped."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        states = torch.randint(0, 4, (n + 1,), generator=g)
        centres = torch.randn(4, 12, generator=torch.Generator().manual_seed(0))
        readings = centres[states] + 0.6 * torch.randn(n + 1, 12, generator=g)
        readings = readings[1:]
        states = states[: len(readings)]
        self.readings, self.states = readings / 1.2, states

    def __len__(self):
        return len(self.states)

    def __getitem__(self, i):
        return self.readings[i], self.states[i]


class StateNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, x):
        return self.net(x)


def main():
    torch.manual_seed(0)
    train_loader = DataLoader(MachineLog(1500, 1), batch_size=50, shuffle=True)
    val_loader = DataLoader(MachineLog(500, 2), batch_size=250)
    model = StateNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(12):
        model.train()
        for x, y in train_loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            acc = sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader) / 500
        print(f"epoch {epoch:2d} loss {loss.item():.4f} val acc {acc:.3f}")


if __name__ == "__main__":
    main()
