import torch
from torch import nn


class Ring:
    """Fixed-size store of states and their returns."""

    def __init__(self, capacity, dim):
        self.capacity = capacity
        self.states = torch.zeros(capacity, dim)
        self.returns = torch.zeros(capacity)
        self.pos_s = self.pos_r = self.filled = 0

    def add(self, s, r):
        self.states[(self.pos_s + torch.arange(len(s))) % self.capacity] = s
        self.returns[(self.pos_r + torch.arange(len(r))) % self.capacity] = r
        self.pos_s = (self.pos_s + len(s)) % self.capacity
        self.pos_r = (self.pos_r + len(r)) % (self.capacity + 1)
        self.filled = min(self.capacity, self.filled + len(s))

    def sample(self, n, generator):
        idx = torch.randint(0, self.filled, (n,), generator=generator)
        return self.states[idx], self.returns[idx]


def play(n, generator):
    s = torch.randn(n, 5, generator=generator)
    r = torch.tanh(s[:, 0] + s[:, 1] * s[:, 2]) + 0.4 * s[:, 3] + 0.1 * torch.randn(n, generator=generator)
    return s, r / 0.8


def main():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(0)
    val_s, val_r = play(1000, torch.Generator().manual_seed(1))
    buffer = Ring(20_000, 5)
    net = nn.Sequential(nn.Linear(5, 48), nn.ReLU(), nn.Linear(48, 1))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    buffer.add(*play(400, g))
    recent = []
    for step in range(1, 6001):
        buffer.add(*play(8, g))
        s, r = buffer.sample(32, g)
        net.train()
        loss = nn.functional.smooth_l1_loss(net(s).squeeze(-1), r)
        opt.zero_grad()
        loss.backward()
        opt.step()
        recent.append(loss.item())
        if step % 500 == 0:
            net.eval()
            with torch.no_grad():
                val = nn.functional.smooth_l1_loss(net(val_s).squeeze(-1), val_r).item()
            print(f"step {step}: value loss {sum(recent[-500:]) / 500:.4f} val {val:.4f}")


if __name__ == "__main__":
    main()
