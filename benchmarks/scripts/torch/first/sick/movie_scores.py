import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Recommender(nn.Module):
    def __init__(self, n_users, n_items, dim=8):
        super().__init__()
        self.users = nn.Embedding(n_users, dim)
        self.items = nn.Embedding(n_items, dim)
        self.mlp = nn.Sequential(nn.Linear(2 * dim, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, u, i):
        return self.mlp(torch.cat([self.users(u), self.items(i)], dim=-1)).squeeze(-1)


def synthetic_log(n=5000, seed=0):
    g = torch.Generator().manual_seed(seed)
    catalogue = torch.randperm(200, generator=g)[:120]
    users = torch.randint(0, 60, (n,), generator=g)
    items = catalogue[torch.randint(0, 120, (n,), generator=g)]
    taste, kind = torch.randn(60, generator=g), torch.randn(200, generator=g)
    score = taste[users] * kind[items] + 0.1 * torch.randn(n, generator=g)
    return users, items, score / score.std()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()
    torch.manual_seed(0)
    users, items, score = synthetic_log()
    model = Recommender(n_users=len(users.unique()), n_items=len(items.unique()))
    train = DataLoader(TensorDataset(users[:4000], items[:4000], score[:4000]), batch_size=50, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for u, i, s in train:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(u, i), s)
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            val = nn.functional.mse_loss(model(users[4000:], items[4000:]), score[4000:]).item()
        print(f"epoch {epoch}: train {total / len(train):.4f} val {val:.4f}")


if __name__ == "__main__":
    main()
