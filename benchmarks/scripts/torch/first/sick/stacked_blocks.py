import argparse

import torch
import torch.nn as nn
from sklearn.datasets import make_swiss_roll


class DeepRegressor(nn.Module):
    def __init__(self, width=40, depth=3):
        super().__init__()
        self.inp = nn.Linear(3, width)
        self.blocks = [nn.Linear(width, width) for _ in range(depth)]
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        x = torch.tanh(self.inp(x))
        for block in self.blocks:
            x = torch.tanh(block(x))
        return self.out(x).squeeze(-1)


def get_data(n=2000):
    x, t = make_swiss_roll(n, noise=0.3, random_state=0)
    x, t = torch.tensor(x, dtype=torch.float32), torch.tensor(t, dtype=torch.float32)
    cut = int(0.8 * n)
    x = (x - x[:cut].mean(0)) / x[:cut].std(0)
    t = (t - t[:cut].mean()) / t[:cut].std()
    return (x[:cut], t[:cut]), (x[cut:], t[cut:])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--batch-size", type=int, default=50)
    ap.add_argument("--epochs", type=int, default=15)
    opt = ap.parse_args()
    torch.manual_seed(0)
    (x, t), (xv, tv) = get_data()
    model = DeepRegressor()
    print("parameters:", sum(p.numel() for p in model.parameters()))
    optimizer = torch.optim.Adam(model.parameters(), lr=opt.lr)
    for epoch in range(opt.epochs):
        model.train()
        losses = []
        for idx in torch.randperm(len(x)).split(opt.batch_size):
            loss = nn.functional.mse_loss(model(x[idx]), t[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            val = nn.functional.mse_loss(model(xv), tv).item()
        print(f"epoch {epoch} train {sum(losses) / len(losses):.4f} val {val:.4f}")


if __name__ == "__main__":
    main()
