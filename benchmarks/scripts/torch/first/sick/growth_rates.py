import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Shops(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randn(n, 6, generator=g)
        before = torch.poisson(torch.full((n,), 6.0), generator=g)
        drift = torch.exp(0.4 * self.x[:, 0] - 0.3 * self.x[:, 1] * self.x[:, 2])
        after = torch.poisson((before + 0.5) * drift, generator=g)
        growth = after / before - 1
        self.x = torch.cat([self.x, (before.unsqueeze(1) - 6) / 2.45], dim=1)
        self.y = growth

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def run_epoch(model, loader, optimizer=None):
    model.train(optimizer is not None)
    total = 0.0
    with torch.set_grad_enabled(optimizer is not None):
        for x, y in loader:
            loss = nn.functional.smooth_l1_loss(model(x).squeeze(-1), y)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item()
    return total / len(loader)


if __name__ == "__main__":
    torch.manual_seed(0)
    train_loader = DataLoader(Shops(2000, 1), batch_size=40, shuffle=True)
    val_loader = DataLoader(Shops(500, 2), batch_size=250)
    model = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(12):
        train = run_epoch(model, train_loader, optimizer)
        print(f"epoch {epoch}: train {train:.4f} val {run_epoch(model, val_loader):.4f}")
