import argparse

import torch
import torch.nn.functional as F
from torch import nn

WORDS, TOPICS = 60, 5


def to_unit(v):
    return v / v.norm(dim=-1, keepdim=True)


class DocClassifier(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.table = nn.Parameter(torch.randn(WORDS, dim) * 0.3)
        self.topic = nn.Parameter(torch.randn(TOPICS, dim) * 0.3)

    def forward(self, counts):
        return 8.0 * to_unit(counts @ self.table) @ to_unit(self.topic).T


def corpus(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, TOPICS, (n,), generator=g)
    rate = torch.full((n, WORDS), 0.25)
    for k in range(TOPICS):
        rate[y == k, 12 * k : 12 * k + 12] = 0.9
    return torch.poisson(rate, generator=g), y


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=16)
    ap.add_argument("--lr", type=float, default=1e-3)
    args = ap.parse_args()
    torch.manual_seed(7)
    x, y = corpus(45_000, 0)
    x[33_403] = 0.0
    x_val, y_val = corpus(1000, 1)
    model = DocClassifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    seen = 0
    for idx in torch.randperm(len(x), generator=torch.Generator().manual_seed(6)).split(args.batch_size):
        model.train()
        loss = F.cross_entropy(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += 1
        if seen % 250 == 0:
            model.eval()
            with torch.no_grad():
                acc = (model(x_val).argmax(1) == y_val).float().mean().item()
            print(f"{seen} batches: loss {loss.item():.4f}, val acc {acc:.3f}")


if __name__ == "__main__":
    main()
