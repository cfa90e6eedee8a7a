import argparse
import math
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")


class LoadCurve(Dataset):
    def __init__(self, start, stop, window=20):
        g = torch.Generator().manual_seed(start)
        t = torch.arange(start, stop).float()
        self.curve = torch.sin(2 * math.pi * t / 24) + 0.6 * torch.sin(2 * math.pi * t / 11)
        self.curve = (self.curve + 0.1 * torch.randn(len(t), generator=g)) / 0.83
        self.window = window

    def __len__(self):
        return len(self.curve) - self.window

    def __getitem__(self, i):
        return self.curve[i : i + self.window, None], self.curve[i + self.window]


class LoadLSTM(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.head(out[:, -1])


@torch.no_grad()
def validate(model, loader, loss_fn):
    model.eval()
    losses = [loss_fn(model(x), y).item() for x, y in loader]
    return sum(losses) / len(losses)


def main(args):
    torch.manual_seed(args.seed)
    train_loader = DataLoader(LoadCurve(0, 1200), args.batch_size, shuffle=True)
    val_loader = DataLoader(LoadCurve(5000, 5300), 140)
    model = LoadLSTM()
    loss_fn = nn.L1Loss() if args.l1 else nn.MSELoss()
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-3)
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for x, y in train_loader:
            opt.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            opt.step()
            total += loss.item()
        print(f"[{epoch}] train {total / len(train_loader):.4f} val {validate(model, val_loader, loss_fn):.4f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--lr", type=float, default=5e-3)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--l1", action="store_true")
    main(p.parse_args())
