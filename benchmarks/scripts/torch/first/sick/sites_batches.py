import torch
from sklearn.datasets import make_classification
from torch import nn


def epoch_order(labels, generator):
    shuffled = torch.randperm(len(labels), generator=generator)
    return shuffled[labels[shuffled].argsort(stable=True)]


class Probe(nn.Module):
    def __init__(self, d, k):
        super().__init__()
        self.net = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 48), nn.GELU(), nn.Linear(48, k))

    def forward(self, x):
        return self.net(x)


def fit(model, x, y, x_val, y_val, epochs=12, batch_size=32, lr=0.05):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    generator = torch.Generator().manual_seed(0)
    for epoch in range(epochs):
        model.train()
        order = epoch_order(y, generator)
        total = 0.0
        for i in range(0, len(order), batch_size):
            idx = order[i : i + batch_size]
            loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        model.eval()
        with torch.no_grad():
            val_acc = (model(x_val).argmax(1) == y_val).float().mean().item()
        print(f"epoch {epoch:2d}  loss {total / len(x):.4f}  val acc {val_acc:.4f}")


if __name__ == "__main__":
    torch.manual_seed(4)
    X, y = make_classification(2400, 20, n_informative=12, n_classes=4, class_sep=1.8, random_state=4)
    X = torch.tensor(X, dtype=torch.float32)
    X = (X - X[:2000].mean(0)) / X[:2000].std(0)
    y = torch.tensor(y)
    fit(Probe(20, 4), X[:2000], y[:2000], X[2000:], y[2000:])
