import argparse

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def loaders(batch_size):
    X, y = load_digits(return_X_y=True)
    X = (X / 16.0 - 0.3) / 0.37
    a, b, c, d = train_test_split(X, y, test_size=0.2, random_state=1, stratify=y)
    train = TensorDataset(torch.tensor(a, dtype=torch.float32), torch.tensor(c))
    val = TensorDataset(torch.tensor(b, dtype=torch.float32), torch.tensor(d))
    return DataLoader(train, batch_size, shuffle=True), DataLoader(val, 360)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--lr", type=float, default=0.1)
    ap.add_argument("--clip", type=float, default=1.0)
    ap.add_argument("--epochs", type=int, default=8)
    args = ap.parse_args()
    torch.manual_seed(1)
    train_loader, val_loader = loaders(64)
    net = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        net.train()
        total = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = criterion(net(x), y)
            scaler.scale(loss).backward()
            nn.utils.clip_grad_norm_(net.parameters(), args.clip)
            scaler.step(optimizer)
            scaler.update()
            total += loss.item()
        net.eval()
        with torch.no_grad():
            acc = sum((net(x).argmax(1) == y).sum().item() for x, y in val_loader) / len(val_loader.dataset)
        print(f"epoch {epoch}: loss {total / len(train_loader):.4f} val acc {acc:.4f}")


if __name__ == "__main__":
    main()
