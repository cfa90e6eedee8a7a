import torch
from sklearn.datasets import make_classification
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_data(seed=2):
    X, y = make_classification(3000, 16, n_informative=10, n_classes=4, class_sep=1.4, random_state=seed)
    X, y = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    train, val = TensorDataset(X[:2400], y[:2400]), TensorDataset(X[2400:], y[2400:])
    mu, sd = train.tensors[0].mean(0), train.tensors[0].std(0)
    train.tensors = ((train.tensors[0] - mu) / sd, train.tensors[1])
    val.tensors = ((val.tensors[0] - mu) / sd, val.tensors[1])
    return train, val


@torch.no_grad()
def evaluate(model, loader, loss_fn):
    model.train(True)
    loss_sum, hit_sum, n = 0.0, 0, 0
    for x, y in loader:
        out = model(x)
        loss_sum += loss_fn(out, y).item() * len(y)
        hit_sum += (out.argmax(1) == y).sum().item()
        n += len(y)
    return loss_sum / n, hit_sum / n


def main():
    torch.manual_seed(2)
    train, val = make_data()
    train_loader = DataLoader(train, batch_size=64, shuffle=True, drop_last=True)
    val_loader = DataLoader(val, batch_size=6)
    model = nn.Sequential(
        nn.Linear(16, 64, bias=False),
        nn.BatchNorm1d(64),
        nn.ReLU(),
        nn.Linear(64, 32, bias=False),
        nn.BatchNorm1d(32),
        nn.ReLU(),
        nn.Linear(32, 4),
    )
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    for epoch in range(10):
        model.train()
        for x, y in train_loader:
            loss = loss_fn(model(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        val_loss, val_acc = evaluate(model, val_loader, loss_fn)
        print(f"epoch={epoch} train_loss={loss.item():.4f} val_loss={val_loss:.4f} val_acc={val_acc:.4f}")


if __name__ == "__main__":
    main()
