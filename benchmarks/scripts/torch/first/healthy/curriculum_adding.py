import torch
from torch import nn


class Adder(nn.Module):
    def __init__(self, hidden=40):
        super().__init__()
        self.gru = nn.GRU(2, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.out(self.gru(x)[1][-1]).squeeze(-1)


def adding(n, length, generator):
    v = torch.rand(n, length, generator=generator) * 2 - 1
    m = torch.zeros(n, length)
    first = torch.randint(0, length // 2, (n,), generator=generator)
    second = torch.randint(length // 2, length, (n,), generator=generator)
    rows = torch.arange(n)
    m[rows, first] = m[rows, second] = 1.0
    return torch.stack([v, m], -1), (v * m).sum(1) / 0.82


def main():
    torch.manual_seed(1)
    g = torch.Generator().manual_seed(1)
    x_val, y_val = adding(500, 16, g)
    model = Adder()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    loss_fn = nn.MSELoss()
    for stage, length in enumerate([6, 8, 10, 12, 14, 16, 16, 16]):
        model.train()
        total = 0.0
        for _ in range(60):
            x, y = adding(40, length, g)
            optimizer.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            val = loss_fn(model(x_val), y_val).item()
        print(f"stage {stage} length {length:2d} train {total / 60:.4f} val at full length {val:.4f}")


if __name__ == "__main__":
    main()
