import math

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    def __init__(self, series, context=24):
        self.series, self.context = series, context

    def __len__(self):
        return len(self.series) - self.context

    def __getitem__(self, i):
        return self.series[i : i + self.context], self.series[i + self.context]


class Forecaster(nn.Module):
    def __init__(self, context=24):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(context, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, x):
        return self.layers(x).squeeze(-1)


class AccumulatingTrainer:
    def __init__(self, model, parts=12, lr=0.03):
        self.model, self.parts = model, parts
        self.opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.loss_fn = nn.MSELoss()

    def train_epoch(self, loader):
        self.model.train()
        self.opt.zero_grad()
        total = 0.0
        for n, (x, y) in enumerate(loader):
            loss = self.loss_fn(self.model(x), y)
            loss.backward()
            total += loss.item()
            if (n + 1) % self.parts == 0:
                self.opt.step()
                self.opt.zero_grad()
        return total / len(loader)

    @torch.no_grad()
    def validate(self, loader):
        self.model.eval()
        return sum(self.loss_fn(self.model(x), y).item() for x, y in loader) / len(loader)


def main():
    torch.manual_seed(14)
    t = torch.arange(2400).float()
    series = torch.sin(2 * math.pi * t / 24) + 0.5 * torch.sin(2 * math.pi * t / 7.3) + 0.1 * torch.randn(2400)
    series = (series - series[:1900].mean()) / series[:1900].std()
    train_loader = DataLoader(Windows(series[:1900]), batch_size=12, shuffle=True, drop_last=True)
    val_loader = DataLoader(Windows(series[1900:]), batch_size=119)
    trainer = AccumulatingTrainer(Forecaster())
    for epoch in range(15):
        print(f"epoch {epoch:2d} train {trainer.train_epoch(train_loader):.4f} val {trainer.validate(val_loader):.4f}")


if __name__ == "__main__":
    main()
