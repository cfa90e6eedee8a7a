import math

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Orbits(Dataset):
    """Position on a noisy ellipse: predict the next point from the last six."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        start = 2 * math.pi * torch.rand(n, 1, generator=g)
        speed = 0.2 + 0.3 * torch.rand(n, 1, generator=g)
        angle = start + speed * torch.arange(7)
        pts = torch.stack([1.5 * angle.cos(), angle.sin()], dim=-1)
        self.pts = pts + 0.03 * torch.randn(n, 7, 2, generator=g)

    def __len__(self):
        return len(self.pts)

    def __getitem__(self, i):
        return self.pts[i, :6].flatten(), self.pts[i, 6]


def epoch_loss(model, loader, optimizer=None):
    model.train(optimizer is not None)
    total = 0.0
    with torch.set_grad_enabled(optimizer is not None):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(y)
    return total / len(loader.dataset)


if __name__ == "__main__":
    torch.manual_seed(0)
    train_loader = DataLoader(Orbits(1500, 0), batch_size=50, shuffle=True)
    val_loader = DataLoader(Orbits(300, 1), batch_size=150)
    model = nn.Sequential(nn.Linear(12, 48), nn.Tanh(), nn.Linear(48, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.9, 0.999), eps=1e8)
    for epoch in range(15):
        train = epoch_loss(model, train_loader, optimizer)
        print(f"epoch {epoch:2d} train {train:.5f} val {epoch_loss(model, val_loader):.5f}")
