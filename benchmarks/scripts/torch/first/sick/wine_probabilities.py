import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(20, 64)
        self.fc2 = nn.Linear(64, 32)
        self.fc3 = nn.Linear(32, 8)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return F.softmax(self.fc3(x), dim=1)


def iterate(X, y, batch_size, shuffle):
    order = torch.randperm(len(X)) if shuffle else torch.arange(len(X))
    for start in range(0, len(X), batch_size):
        idx = order[start : start + batch_size]
        yield X[idx], y[idx]


def main():
    torch.manual_seed(10)
    X, y = make_classification(2400, 20, n_informative=12, n_classes=8, class_sep=2.0, random_state=10)
    Xt, Xv, yt, yv = train_test_split(X, y, test_size=400, random_state=10, stratify=y)
    m, s = Xt.mean(0), Xt.std(0)
    Xt, Xv = torch.tensor((Xt - m) / s).float(), torch.tensor((Xv - m) / s).float()
    yt, yv = torch.tensor(yt), torch.tensor(yv)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(1, 13):
        net.train()
        total = 0.0
        for xb, yb in iterate(Xt, yt, 50, shuffle=True):
            optimizer.zero_grad()
            loss = F.nll_loss(net(xb), yb)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(xb)
        net.eval()
        with torch.no_grad():
            hits = sum((net(xb).argmax(1) == yb).sum().item() for xb, yb in iterate(Xv, yv, 200, shuffle=False))
        print(f"Epoch {epoch:2d}  train loss {total / len(Xt):.4f}  val acc {hits / len(Xv):.4f}")


if __name__ == "__main__":
    main()
