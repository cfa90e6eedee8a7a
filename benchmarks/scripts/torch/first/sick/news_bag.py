import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def bags(n, seed, vocab=80, topics=5):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, topics, (n,), generator=g)
    own = torch.randint(0, vocab // topics, (n, 12), generator=g) * topics + y.unsqueeze(1)
    other = torch.randint(0, vocab, (n, 12), generator=g)
    take = torch.rand(n, 12, generator=g) < 0.4
    return TensorDataset(torch.where(take, own, other), y)


class TopicNet(nn.Module):
    def __init__(self, vocab=80, dim=24, topics=5):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.fc = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, topics))

    def forward(self, ids):
        return self.fc(self.embed(ids).mean(1))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--lr", type=float, default=1e-6)
    ap.add_argument("--epochs", type=int, default=10)
    args = ap.parse_args()
    torch.manual_seed(0)
    train_loader = DataLoader(bags(2000, 0), batch_size=50, shuffle=True)
    val_loader = DataLoader(bags(500, 1), batch_size=250)
    model = TopicNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for ids, y in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(ids), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            acc = sum((model(i).argmax(1) == t).sum().item() for i, t in val_loader) / 500
        print(f"epoch {epoch}: loss {total / len(train_loader):.5f} val acc {acc:.3f}")


if __name__ == "__main__":
    main()
