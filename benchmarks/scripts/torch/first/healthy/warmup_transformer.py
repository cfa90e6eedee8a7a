import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class SeqClassifier(nn.Module):
    def __init__(self, vocab=10, length=12, dim=32):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(length, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.1, batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(dim, 3)

    def forward(self, ids):
        h = self.tok(ids) + self.pos(torch.arange(ids.shape[1]))
        return self.head(self.enc(h).mean(1))


def compare_task(n, seed):
    """More ones than twos, the reverse, or as many?"""
    g = torch.Generator().manual_seed(seed)
    ids = torch.randint(1, 10, (n, 12), generator=g)
    ids = torch.where(ids > 6, ids % 2 + 1, ids)
    diff = (ids == 1).sum(1) - (ids == 2).sum(1)
    return TensorDataset(ids, diff.sign() + 1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--warmup", type=int, default=60)
    ap.add_argument("--epochs", type=int, default=8)
    args = ap.parse_args()
    torch.manual_seed(0)
    train_loader = DataLoader(compare_task(2400, 0), batch_size=40, shuffle=True)
    val_loader = DataLoader(compare_task(600, 1), batch_size=200)
    model = SeqClassifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)

    def factor(step):
        step += 1
        return min(step / args.warmup, (args.warmup / step) ** 0.5)

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for ids, y in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(ids), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            acc = sum((model(i).argmax(1) == t).sum().item() for i, t in val_loader) / 600
        print(f"epoch {epoch}: loss {total / len(train_loader):.4f} val acc {acc:.4f}")


if __name__ == "__main__":
    main()
