import argparse

import torch
from sklearn.datasets import make_friedman1
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def get_loaders(micro_batch):
    X, y = make_friedman1(n_samples=2400, n_features=10, noise=0.3, random_state=7)
    X = torch.tensor((X - 0.5) / 0.2887, dtype=torch.float32)
    y = torch.tensor(y, dtype=torch.float32)
    y = (y - y[:2000].mean()) / y[:2000].std()
    train, val = random_split(TensorDataset(X, y), [2000, 400], generator=torch.Generator().manual_seed(0))
    return DataLoader(train, micro_batch, shuffle=True, drop_last=True), DataLoader(val, 200)


def evaluate(model, loader):
    model.eval()
    se = 0.0
    with torch.no_grad():
        for x, y in loader:
            se += ((model(x).squeeze(-1) - y) ** 2).sum().item()
    model.train()
    return se / len(loader.dataset)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=20)
    ap.add_argument("--lr", type=float, default=0.15)
    ap.add_argument("--micro-batch", type=int, default=8)
    ap.add_argument("--accumulate", type=int, default=8)
    args = ap.parse_args()
    torch.manual_seed(0)

    train_loader, val_loader = get_loaders(args.micro_batch)
    model = nn.Sequential(nn.Linear(10, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    mse = nn.MSELoss()

    for epoch in range(args.epochs):
        total = 0.0
        for i, (x, y) in enumerate(train_loader):
            optimizer.zero_grad()
            loss = mse(model(x).squeeze(-1), y)
            (loss / args.accumulate).backward()
            total += loss.item()
            if (i + 1) % args.accumulate == 0:
                optimizer.step()
        if epoch % 5 == 4:
            val = evaluate(model, val_loader)
            print(f"epoch {epoch + 1} train mse {total / len(train_loader):.4f} val mse {val:.4f}")


if __name__ == "__main__":
    main()
