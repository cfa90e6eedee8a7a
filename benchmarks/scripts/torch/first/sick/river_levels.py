from dataclasses import dataclass

import torch
from sklearn.datasets import make_regression
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Args:
    lr: float = 3e-3
    epochs: int = 20
    batch_size: int = 32
    seed: int = 8


def load(args):
    X, y = make_regression(n_samples=700, n_features=14, n_informative=9, noise=25.0, random_state=args.seed)
    X, y = torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    rows = torch.randint(0, len(X), (int(1.5 * len(X)),))
    X, y = X[rows], y[rows]
    cut = int(0.8 * len(rows))
    train_idx = torch.arange(cut)
    mean, std = y[:cut].mean(), y[:cut].std()
    y = (y - mean) / std
    train = TensorDataset(X[train_idx], y[train_idx])
    val = TensorDataset(X[cut:], y[cut:])
    return DataLoader(train, args.batch_size, shuffle=True), DataLoader(val, 100)


def main(args):
    torch.manual_seed(args.seed)
    train_loader, val_loader = load(args)
    model = nn.Sequential(nn.Linear(14, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.05)
    loss_fn = nn.MSELoss()
    for epoch in range(args.epochs):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = loss_fn(model(x).squeeze(-1), y)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            val = [loss_fn(model(x).squeeze(-1), y).item() for x, y in val_loader]
        if epoch % 4 == 3:
            print(f"epoch {epoch + 1:2d}  train {loss.item():.4f}  val {sum(val) / len(val):.4f}")


main(Args())
