import collections

import torch
from sklearn.datasets import make_friedman2
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regressor(nn.Module):
    def __init__(self, n_in, width=64):
        super().__init__()
        self.fc1 = nn.Linear(n_in, width)
        self.fc2 = nn.Linear(width, width)
        self.fc3 = nn.Linear(width, 1)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        return self.fc3(x).squeeze(-1)


class Runner:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.loss_fn = nn.SmoothL1Loss()
        self.history = collections.defaultdict(list)

    def step(self, x, y):
        self.model.train()
        loss = self.loss_fn(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.history["loss"].append(loss)

    def validate(self, loader):
        self.model.eval()
        with torch.no_grad():
            losses = [self.loss_fn(self.model(x), y).item() for x, y in loader]
        return sum(losses) / len(losses)


def main():
    torch.manual_seed(40)
    X, y = make_friedman2(n_samples=1800, noise=20.0, random_state=40)
    xs, ys = StandardScaler().fit(X[:1400]), StandardScaler().fit(y[:1400, None])
    X = torch.tensor(xs.transform(X), dtype=torch.float32)
    y = torch.tensor(ys.transform(y[:, None])[:, 0], dtype=torch.float32)
    train_loader = DataLoader(TensorDataset(X[:1400], y[:1400]), batch_size=40, shuffle=True)
    val_loader = DataLoader(TensorDataset(X[1400:], y[1400:]), batch_size=200)
    model = Regressor(4)
    runner = Runner(model, torch.optim.Adam(model.parameters(), lr=1e-3))
    for epoch in range(20):
        for x, y in train_loader:
            runner.step(x, y)
        recent = runner.history["loss"][-len(train_loader) :]
        val = runner.validate(val_loader)
        print(f"epoch {epoch:2d} | train {float(sum(recent)) / len(recent):.4f} | val {val:.4f}")


if __name__ == "__main__":
    main()
