"""Forest-like tabular classification, in bfloat16 to save memory."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_classification
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--width", type=int, default=96)
    return parser.parse_args()


class ResidualBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, width)
        self.fc2 = nn.Linear(width, width)

    def forward(self, x):
        return x + self.fc2(F.gelu(self.fc1(self.norm(x))))


class TabularNet(nn.Module):
    def __init__(self, n_features, n_classes, width):
        super().__init__()
        self.inp = nn.Linear(n_features, width)
        self.blocks = nn.Sequential(ResidualBlock(width), ResidualBlock(width))
        self.head = nn.Linear(width, n_classes)

    def forward(self, x):
        return self.head(self.blocks(self.inp(x)))


def get_data(batch_size):
    X, y = make_classification(
        n_samples=4000,
        n_features=24,
        n_informative=12,
        n_redundant=4,
        n_classes=5,
        n_clusters_per_class=2,
        class_sep=1.2,
        random_state=0,
    )
    X_train, X_val, y_train, y_val = X[:3200], X[3200:], y[:3200], y[3200:]
    scaler = StandardScaler().fit(X_train)
    X_train = torch.tensor(scaler.transform(X_train), dtype=torch.float32)
    X_val = torch.tensor(scaler.transform(X_val), dtype=torch.float32)
    train = TensorDataset(X_train, torch.tensor(y_train))
    val = TensorDataset(X_val, torch.tensor(y_val))
    return DataLoader(train, batch_size=batch_size, shuffle=True), DataLoader(val, batch_size=400)


def run(model, x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return model(x.to(next(model.parameters()).dtype)).float()


def main():
    args = get_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train_loader, val_loader = get_data(args.batch_size)
    model = TabularNet(24, 5, args.width).to(torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for x, y in train_loader:
            optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(run(model, x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            hits = sum((run(model, x).argmax(1) == y).sum().item() for x, y in val_loader)
        print(f"epoch {epoch}: loss {total / len(train_loader):.4f}  val acc {hits / len(val_loader.dataset):.4f}")


if __name__ == "__main__":
    main()
