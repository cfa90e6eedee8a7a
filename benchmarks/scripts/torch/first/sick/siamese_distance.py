import torch
import torch.nn as nn
from sklearn.datasets import load_digits


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))

    def forward(self, x):
        return self.net(x)


def euclid(a, b):
    return torch.sqrt(((a - b) ** 2).sum(dim=1))


def contrastive(dist, same, margin=2.0):
    return (same * dist**2 + (1 - same) * torch.relu(margin - dist) ** 2).mean()


def sample_pairs(X, y, n, generator):
    i = torch.randint(0, len(X), (n,), generator=generator)
    j = torch.randint(0, len(X), (n,), generator=generator)
    for k in range(0, n, 2):
        members = (y == y[i[k]]).nonzero().squeeze(1)
        j[k] = members[torch.randint(0, len(members), (1,), generator=generator)]
    return X[i], X[j], (y[i] == y[j]).float()


torch.manual_seed(0)
gen = torch.Generator().manual_seed(1)
data = load_digits()
X = torch.tensor(data.data / 8 - 1, dtype=torch.float32)
y = torch.tensor(data.target)
order = torch.randperm(len(X), generator=gen)
X_tr, y_tr, X_va, y_va = X[order[:1500]], y[order[:1500]], X[order[1500:]], y[order[1500:]]
net = Embedder()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(1, 401):
    net.train()
    a, b, same = sample_pairs(X_tr, y_tr, 64, gen)
    loss = contrastive(euclid(net(a), net(b)), same)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 80 == 0:
        net.eval()
        with torch.no_grad():
            nearest = torch.cdist(net(X_va), net(X_tr)).argmin(1)
            acc = (y_tr[nearest] == y_va).float().mean().item()
        print(f"step {step}: loss {loss.item():.4f} nearest-neighbour acc {acc:.3f}")
