import pathlib
import tempfile

import torch
from sklearn.datasets import make_classification
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Wrapped(nn.Module):
    """Stands for the parallel wrapper that the cluster job uses."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)


class Job:
    def __init__(self, model, folder, data):
        self.model = model
        self.path = pathlib.Path(folder) / "last.pt"
        self.train_loader, self.val = data
        self.opt = torch.optim.AdamW(model.parameters(), lr=3e-3)

    def save(self, epoch):
        torch.save({"model": self.model.state_dict(), "epoch": epoch}, self.path)

    def run(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            for x, y in self.train_loader:
                self.opt.zero_grad()
                loss = nn.functional.cross_entropy(self.model(x), y)
                loss.backward()
                self.opt.step()
            self.model.eval()
            with torch.no_grad():
                acc = (self.model(self.val[0]).argmax(1) == self.val[1]).float().mean().item()
            print(f"epoch {epoch} loss {loss.item():.4f} val acc {acc:.3f}")
            self.save(epoch)


def new_model():
    return nn.Sequential(nn.Linear(15, 48), nn.ReLU(), nn.Linear(48, 3))


def main():
    torch.manual_seed(5)
    X, y = make_classification(1800, 15, n_informative=9, n_classes=3, class_sep=1.5, random_state=5)
    X, y = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    X = (X - X[:1500].mean(0)) / X[:1500].std(0)
    data = DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=50, shuffle=True), (X[1500:], y[1500:])
    with tempfile.TemporaryDirectory() as folder:
        Job(Wrapped(new_model()), folder, data).run(6)
        state = torch.load(pathlib.Path(folder) / "last.pt")
        single = new_model()
        single.load_state_dict(state["model"])
        print("resumed from epoch", state["epoch"])
        Job(Wrapped(single), folder, data).run(3)


if __name__ == "__main__":
    main()
