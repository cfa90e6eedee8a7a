import pathlib
import tempfile

import torch
from sklearn.datasets import make_classification
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, train_loader, val_loader, folder):
        self.model, self.train_loader, self.val_loader = model, train_loader, val_loader
        self.optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-3)
        self.scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(self.optimizer, factor=0.5, patience=2)
        self.criterion = nn.CrossEntropyLoss()
        self.path = pathlib.Path(folder) / "best.pt"
        self.best = float("inf")

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for x, y in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(y)
        return total / len(self.train_loader.dataset)

    @torch.inference_mode()
    def validate(self):
        self.model.eval()
        loss = acc = 0.0
        for x, y in self.val_loader:
            out = self.model(x)
            loss += self.criterion(out, y).item() * len(y)
            acc += (out.argmax(1) == y).sum().item()
        n = len(self.val_loader.dataset)
        return loss / n, acc / n

    def fit(self, epochs):
        for epoch in range(epochs):
            train, (val, acc) = self.train_epoch(), self.validate()
            self.scheduler.step(val)
            if val < self.best:
                self.best = val
                torch.save({"model": self.model.state_dict(), "opt": self.optimizer.state_dict()}, self.path)
            print(f"epoch {epoch:2d} train {train:.4f} val {val:.4f} acc {acc:.3f}")
        self.model.load_state_dict(torch.load(self.path)["model"])
        print(f"best: val loss {self.validate()[0]:.4f}")


if __name__ == "__main__":
    torch.manual_seed(6)
    X, y = make_classification(2500, 16, n_informative=10, n_classes=3, class_sep=1.6, random_state=6)
    X, y = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    X = (X - X[:2000].mean(0)) / X[:2000].std(0)
    train = DataLoader(TensorDataset(X[:2000], y[:2000]), batch_size=50, shuffle=True)
    val = DataLoader(TensorDataset(X[2000:], y[2000:]), batch_size=250)
    with tempfile.TemporaryDirectory() as folder:
        net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 3))
        Trainer(net, train, val, folder).fit(12)
