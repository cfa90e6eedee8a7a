import torch
from torch import nn

USERS, ITEMS = 100, 60


class MF(nn.Module):
    def __init__(self, k=6):
        super().__init__()
        self.user, self.item = nn.Embedding(USERS, k), nn.Embedding(ITEMS, k)
        self.user_bias, self.item_bias = nn.Embedding(USERS, 1), nn.Embedding(ITEMS, 1)
        for emb in (self.user, self.item):
            nn.init.normal_(emb.weight, std=0.2)
        for emb in (self.user_bias, self.item_bias):
            nn.init.zeros_(emb.weight)

    def forward(self, u, i):
        bias = (self.user_bias(u) + self.item_bias(i)).squeeze(-1)
        return (self.user(u) * self.item(i)).sum(-1) + bias


def ratings(seed=0):
    g = torch.Generator().manual_seed(seed)
    p, q = torch.randn(USERS, 2, generator=g), torch.randn(ITEMS, 2, generator=g)
    pair = torch.randperm(USERS * ITEMS, generator=g)[:4500]
    u, i = pair // ITEMS, pair % ITEMS
    r = (p[u] * q[i]).sum(-1) / 1.4 + 0.3 * torch.randn(len(u), generator=g)
    return u, i, r


if __name__ == "__main__":
    torch.manual_seed(0)
    u, i, r = ratings()
    train, test = slice(0, 3800), slice(3800, 4500)
    model = MF()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-4)
    for epoch in range(15):
        model.train()
        total = 0.0
        for b in torch.randperm(3800).split(100):
            loss = nn.functional.mse_loss(model(u[b], i[b]), r[b])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(b)
        model.eval()
        with torch.no_grad():
            rmse = nn.functional.mse_loss(model(u[test], i[test]), r[test]).sqrt().item()
        print(f"epoch {epoch:2d} train mse {total / 3800:.4f} test rmse {rmse:.4f}")
