import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class SlowRNN(nn.Module):
    def __init__(self, n_in, hidden, classes):
        super().__init__()
        self.inp = nn.Linear(n_in, hidden)
        self.rec = nn.Linear(hidden, hidden, bias=False)
        nn.init.orthogonal_(self.rec.weight, gain=0.6)
        self.out = nn.Linear(hidden, classes)
        self.rate = 0.2

    def forward(self, x):
        h = torch.zeros(x.shape[0], self.rec.in_features)
        for t in range(x.shape[1]):
            h = torch.tanh(self.inp(x[:, t]) + self.rec(h))
        return self.out(h)


def batch(n, length, generator):
    """Which of four symbols stood in the first two steps?"""
    y = torch.randint(0, 4, (n,), generator=generator)
    x = torch.randn(n, length, 6, generator=generator) * 0.3
    x[:, :2, :4] += 3.0 * F.one_hot(y, 4).float().unsqueeze(1)
    return x, y


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--length", type=int, default=40)
    ap.add_argument("--steps", type=int, default=400)
    args = ap.parse_args()
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(0)
    x_val, y_val = batch(400, args.length, g)
    net = SlowRNN(6, 32, 4)
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for step in range(1, args.steps + 1):
        net.train()
        x, y = batch(32, args.length, g)
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        if step % 50 == 0:
            net.eval()
            with torch.no_grad():
                acc = (net(x_val).argmax(1) == y_val).float().mean().item()
            print(f"step {step}: loss {loss.item():.4f} val acc {acc:.3f}")


if __name__ == "__main__":
    main()
