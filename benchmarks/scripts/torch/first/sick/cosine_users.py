import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def unit(profile):
    return profile / profile.norm(dim=1, keepdim=True)


class Ranker(nn.Module):
    def __init__(self, n_items=30, dim=24):
        super().__init__()
        self.enc = nn.Linear(n_items, dim)
        self.out = nn.Sequential(nn.ReLU(), nn.Linear(dim, 3))

    def forward(self, purchases):
        return self.out(self.enc(unit(purchases) * 3.0))


def purchases(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=g)
    rate = torch.full((n, 30), 0.1)
    for k in range(3):
        rate[y == k, 10 * k : 10 * k + 10] = 0.45
    active = (torch.rand(n, 1, generator=g) > 0.01).float()
    return TensorDataset(torch.poisson(rate * active, generator=g), y)


class Loop:
    def __init__(self):
        self.model = Ranker()
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=3e-3)
        self.train_loader = DataLoader(purchases(1600, 0), batch_size=40, shuffle=True)
        self.val_loader = DataLoader(purchases(400, 1), batch_size=100)

    def run(self, epochs=8):
        for epoch in range(epochs):
            self.model.train()
            total = 0.0
            for x, y in self.train_loader:
                loss = nn.functional.cross_entropy(self.model(x), y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                total += loss.item()
            print(f"epoch {epoch} loss {total / len(self.train_loader):.4f} val acc {self.score():.3f}")

    @torch.no_grad()
    def score(self):
        self.model.eval()
        return sum((self.model(x).argmax(1) == y).sum().item() for x, y in self.val_loader) / 400


if __name__ == "__main__":
    torch.manual_seed(0)
    Loop().run()
