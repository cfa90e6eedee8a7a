import copy

import torch
from sklearn.datasets import make_friedman1
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class EMA:
    def __init__(self, model, decay=0.98):
        self.shadow = copy.deepcopy(model).eval()
        self.shadow.requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for s, p in zip(self.shadow.parameters(), model.parameters(), strict=True):
            s.lerp_(p, 1 - self.decay)


def main():
    torch.manual_seed(0)
    X, y = make_friedman1(2000, n_features=8, noise=0.5, random_state=0)
    X = torch.tensor((X - 0.5) / 0.289, dtype=torch.float32)
    y = torch.tensor(y, dtype=torch.float32)
    y = (y - y[:1600].mean()) / y[:1600].std()
    loader = DataLoader(TensorDataset(X[:1600], y[:1600]), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    ema = EMA(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    loss_fn = nn.MSELoss()
    for epoch in range(15):
        model.train()
        total = 0.0
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(xb).squeeze(1), yb)
            loss.backward()
            optimizer.step()
            ema.update(model)
            total += loss.item()
        with torch.no_grad():
            val = loss_fn(ema.shadow(X[1600:]).squeeze(1), y[1600:]).item()
        print(f"epoch {epoch:2d} train {total / len(loader):.4f} val (ema) {val:.4f}")


if __name__ == "__main__":
    main()
