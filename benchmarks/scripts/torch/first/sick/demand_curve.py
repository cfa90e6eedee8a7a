import math

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Demand(Dataset):
    """From three settings, the demand in the next six hours."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randn(n, 3, generator=g)
        h = torch.arange(6) / 6 * 2 * math.pi
        base = self.x[:, :1] * torch.sin(h) + self.x[:, 1:2] * torch.cos(h) + self.x[:, 2:] ** 2 * 0.4 - 0.4
        self.y = base + 0.05 * torch.randn(n, 6, generator=g)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"inputs": self.x[i], "labels": self.y[i]}


class Trainer:
    def __init__(self, model, train_set, eval_set, lr=3e-3, epochs=12):
        self.model = model
        self.train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
        self.eval_loader = DataLoader(eval_set, batch_size=100)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.loss_fn = nn.CrossEntropyLoss()
        self.epochs = epochs

    def train(self):
        for epoch in range(self.epochs):
            self.model.train()
            total = 0.0
            for batch in self.train_loader:
                out = self.model(batch["inputs"])
                loss = self.loss_fn(out, batch["labels"])
                loss.backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
                total += loss.item()
            print({"epoch": epoch, "loss": round(total / len(self.train_loader), 4), **self.evaluate()})

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        err = [(self.model(b["inputs"]) - b["labels"]).abs().mean().item() for b in self.eval_loader]
        return {"eval_mae": round(sum(err) / len(err), 4)}


if __name__ == "__main__":
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 6))
    Trainer(net, Demand(1500, 0), Demand(300, 1)).train()
