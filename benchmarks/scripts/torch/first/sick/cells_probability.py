from dataclasses import dataclass

import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    seed: int = 3
    hidden: int = 48
    lr: float = 0.05
    batch_size: int = 32
    epochs: int = 15


class RiskModel(nn.Module):
    def __init__(self, n_features, hidden):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(n_features, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.score = nn.Linear(hidden, 1)

    def forward(self, x):
        score = self.score(self.trunk(x))
        return torch.sigmoid(score).squeeze(-1)


def prepare(cfg):
    X, y = make_classification(2400, 18, n_informative=10, class_sep=1.0, weights=[0.7, 0.3], random_state=cfg.seed)
    Xt, Xv, yt, yv = train_test_split(X, y, test_size=0.25, random_state=cfg.seed, stratify=y)
    m, s = Xt.mean(0), Xt.std(0)
    train = TensorDataset(torch.tensor((Xt - m) / s).float(), torch.tensor(yt).float())
    val = TensorDataset(torch.tensor((Xv - m) / s).float(), torch.tensor(yv).float())
    return DataLoader(train, cfg.batch_size, shuffle=True), DataLoader(val, 200)


def main(cfg):
    torch.manual_seed(cfg.seed)
    train_loader, val_loader = prepare(cfg)
    model = RiskModel(18, cfg.hidden)
    loss_fn = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=0.9)
    for epoch in range(cfg.epochs):
        model.train()
        train_loss = 0.0
        for x, y in train_loader:
            loss = loss_fn(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            train_loss += loss.item()
        model.eval()
        val_loss, hits = 0.0, 0
        with torch.no_grad():
            for x, y in val_loader:
                prob = model(x)
                pred = (prob > 0.5).float()
                val_loss += loss_fn(prob, y).item()
                hits += (pred == y).sum().item()
        n, m = len(train_loader), len(val_loader)
        print(f"{epoch:2d} train {train_loss / n:.4f} val {val_loss / m:.4f} acc {hits / len(val_loader.dataset):.4f}")


main(Config())
