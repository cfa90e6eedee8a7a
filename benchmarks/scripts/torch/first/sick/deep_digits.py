import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

CONFIG = {"seed": 0, "depth": 14, "width": 48, "lr": 0.05, "batch_size": 64, "epochs": 10}


def build_model(cfg):
    layers, d = [], 64
    for _ in range(cfg["depth"]):
        layers += [nn.Linear(d, cfg["width"], bias=False), nn.BatchNorm1d(cfg["width"]), nn.ReLU()]
        d = cfg["width"]
    return nn.Sequential(*layers, nn.Linear(d, 10))


def evaluate(model, loader):
    model.eval()
    hits, n = 0, 0
    with torch.no_grad():
        for x, y in loader:
            hits += (model(x).argmax(1) == y).sum().item()
            n += len(y)
    return hits / n


def train_one_epoch(model, loader, optimizer, loss_fn):
    model.training = True
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
    return total / len(loader.dataset)


def run(cfg):
    torch.manual_seed(cfg["seed"])
    digits = load_digits()
    x = torch.tensor(digits.data / 8.0 - 1.0, dtype=torch.float32)
    dataset = TensorDataset(x, torch.tensor(digits.target))
    train_set, val_set = random_split(dataset, [1472, len(x) - 1472])
    train_loader = DataLoader(train_set, cfg["batch_size"], shuffle=True)
    val_loader = DataLoader(val_set, 256)

    model = build_model(cfg)
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg["lr"], momentum=0.9)
    loss_fn = nn.CrossEntropyLoss()
    print(f"before training: val acc {evaluate(model, val_loader):.3f}")
    for epoch in range(cfg["epochs"]):
        loss = train_one_epoch(model, train_loader, optimizer, loss_fn)
        print(f"epoch {epoch + 1}: loss {loss:.4f} val acc {evaluate(model, val_loader):.3f}")


if __name__ == "__main__":
    run(CONFIG)
