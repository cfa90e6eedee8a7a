import torch
from sklearn.datasets import make_friedman1
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CFG = {"width": 32, "depth": 24, "lr": 0.02, "batch": 40, "epochs": 12, "seed": 2}


class Residual(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.depth = depth

    def forward(self, x):
        x = x + x + self.f(x)
        return x


class Tower(nn.Module):
    def __init__(self, n_in, width, depth):
        super().__init__()
        self.stem = nn.Linear(n_in, width)
        self.blocks = nn.Sequential(*[Residual(width, depth) for _ in range(depth)])
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x))).squeeze(-1)


def main(cfg):
    torch.manual_seed(cfg["seed"])
    X, y = make_friedman1(1500, n_features=10, noise=0.5, random_state=2)
    X = torch.tensor((X - 0.5) / 0.289, dtype=torch.float32)
    y = torch.tensor(y, dtype=torch.float32)
    y = (y - y[:1200].mean()) / y[:1200].std()
    loader = DataLoader(TensorDataset(X[:1200], y[:1200]), cfg["batch"], shuffle=True)
    model = Tower(10, cfg["width"], cfg["depth"])
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg["lr"], momentum=0.9)
    for epoch in range(cfg["epochs"]):
        model.train()
        total = 0.0
        for xb, yb in loader:
            loss = nn.functional.mse_loss(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            val = nn.functional.mse_loss(model(X[1200:]), y[1200:]).item()
        print(f"epoch {epoch}: train {total / len(loader):.5g} val {val:.5g}")


if __name__ == "__main__":
    main(CFG)
