import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Encoder(nn.Module):
    def __init__(self, vocab, length, dim=32, heads=4, layers=2, classes=6):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(torch.randn(1, length, dim) * 0.02)
        layer = nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout=0.0, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(dim, classes)

    def forward(self, ids):
        return self.head(self.enc(self.tok(ids) + self.pos).mean(1))


def count_task(n, seed, vocab=12, length=16):
    """How many times does token 0 occur (0 to 5)?"""
    g = torch.Generator().manual_seed(seed)
    ids = torch.randint(1, vocab, (n, length), generator=g)
    k = torch.randint(0, 6, (n,), generator=g)
    for row, c in zip(ids, k):
        row[torch.randperm(length, generator=g)[:c]] = 0
    return TensorDataset(ids, k)


class Fitter:
    def __init__(self, model, args):
        self.model = model
        self.opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
        self.sched = torch.optim.lr_scheduler.ExponentialLR(self.opt, gamma=args.gamma)

    def epoch(self, loader):
        self.model.train()
        total = 0.0
        for ids, target in loader:
            self.opt.zero_grad()
            loss = F.cross_entropy(self.model(ids), target)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.opt.step()
            self.sched.step()
            total += loss.item()
        return total / len(loader)

    @torch.no_grad()
    def accuracy(self, loader):
        self.model.eval()
        return sum((self.model(i).argmax(1) == t).sum().item() for i, t in loader) / len(loader.dataset)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--gamma", type=float, default=0.85)
    args = parser.parse_args()
    torch.manual_seed(0)
    train_loader = DataLoader(count_task(1600, 0), batch_size=32, shuffle=True)
    val_loader = DataLoader(count_task(400, 1), batch_size=200)
    fitter = Fitter(Encoder(12, 16), args)
    for e in range(args.epochs):
        print(f"epoch {e}: loss {fitter.epoch(train_loader):.3f} acc {fitter.accuracy(val_loader):.3f}")
