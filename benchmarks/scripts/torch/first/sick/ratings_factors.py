import torch
from torch import nn


class Factors(nn.Module):
    def __init__(self, users, items, k=8):
        super().__init__()
        self.u = nn.Embedding(users, k)
        self.i = nn.Embedding(items, k)
        self.bu = nn.Embedding(users, 1)
        self.bi = nn.Embedding(items, 1)
        for e in (self.u, self.i):
            nn.init.normal_(e.weight, std=0.3)
        for e in (self.bu, self.bi):
            nn.init.zeros_(e.weight)

    def forward(self, users, items):
        dot = (self.u(users) * self.i(items)).sum(-1)
        return dot + self.bu(users).squeeze(-1) + self.bi(items).squeeze(-1)


def make_ratings(users=120, items=80, n=6000):
    g = torch.Generator().manual_seed(0)
    p, q = torch.randn(users, 3, generator=g), torch.randn(items, 3, generator=g)
    pairs = torch.randperm(users * items, generator=g)[:n]
    u, i = pairs // items, pairs % items
    r = (p[u] * q[i]).sum(-1)
    r = (r - r.mean()) / r.std() + 0.1 * torch.randn(n, generator=g)
    return (u[:4500], i[:4500], r[:4500]), (u[4500:], i[4500:], r[4500:])


def train_epoch(model, data, batch_size=1500):
    optimizer = torch.optim.SGD(model.parameters(), lr=2.0, momentum=0.95)
    model.train()
    u, i, r = data
    total = 0.0
    for idx in torch.randperm(len(r)).split(batch_size):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(u[idx], i[idx]), r[idx])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    return total / len(r)


def rmse(model, data):
    model.eval()
    with torch.no_grad():
        return nn.functional.mse_loss(model(*data[:2]), data[2]).sqrt().item()


if __name__ == "__main__":
    torch.manual_seed(0)
    train, test = make_ratings()
    model = Factors(120, 80)
    for epoch in range(25):
        loss = train_epoch(model, train)
        print(f"epoch {epoch:2d} train mse {loss:.4f} test rmse {rmse(model, test):.4f}")
