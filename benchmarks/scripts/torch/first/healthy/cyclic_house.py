import torch
from sklearn.datasets import make_friedman3
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regressor(nn.Module):
    def __init__(self, n_in, width=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_in, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.net(x)).squeeze(-1)


def main():
    torch.manual_seed(5)
    X, y = make_friedman3(n_samples=1800, noise=0.1, random_state=5)
    X = torch.tensor(StandardScaler().fit(X[:1400]).transform(X), dtype=torch.float32)
    y = torch.tensor(y, dtype=torch.float32)
    y = (y - y[:1400].mean()) / y[:1400].std()
    loader = DataLoader(TensorDataset(X[:1400], y[:1400]), batch_size=28, shuffle=True)
    model = Regressor(4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.005, max_lr=0.05, step_size_up=100)
    for epoch in range(16):
        model.train()
        total = 0.0
        for xb, yb in loader:
            loss = nn.functional.mse_loss(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            val = nn.functional.mse_loss(model(X[1400:]), y[1400:]).item()
        print(f"epoch {epoch:2d} lr {scheduler.get_last_lr()[0]:.4f} train {total / len(loader):.4f} val {val:.4f}")


if __name__ == "__main__":
    main()
