import torch
from sklearn.datasets import make_friedman1
from torch import nn

config = {"lr": 1.5, "momentum": 0.5, "epochs": 15, "batch_size": 50, "hidden": 48, "seed": 4}


class HeatModel(nn.Module):
    def __init__(self, n_in, hidden):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(n_in, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, x):
        return self.layers(x).squeeze(-1)


def data(seed):
    X, y = make_friedman1(n_samples=1500, n_features=6, noise=0.5, random_state=seed)
    X, y = torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    X = (X - X[:1200].mean(0)) / X[:1200].std(0)
    y = (y - y[:1200].mean()) / y[:1200].std()
    return X[:1200], y[:1200], X[1200:], y[1200:]


def main(cfg):
    torch.manual_seed(cfg["seed"])
    X, y, X_val, y_val = data(cfg["seed"])
    model = HeatModel(X.shape[1], cfg["hidden"])
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg["lr"], momentum=cfg["momentum"])
    for epoch in range(cfg["epochs"]):
        model.train()
        losses = []
        for idx in torch.randperm(len(X)).split(cfg["batch_size"]):
            loss = nn.functional.mse_loss(model(X[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            val = nn.functional.mse_loss(model(X_val), y_val).item()
        print(f"epoch {epoch:2d} train {sum(losses) / len(losses):.4g} val {val:.4g}")


if __name__ == "__main__":
    main(config)
