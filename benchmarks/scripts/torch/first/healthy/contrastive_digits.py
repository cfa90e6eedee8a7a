import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.manual_seed(0)
d = load_digits()
order = torch.randperm(len(d.target))
X = torch.tensor(d.data, dtype=torch.float32)[order] / 8 - 1
y = torch.tensor(d.target)[order]
X_tr, y_tr, X_va, y_va = X[:1400], y[:1400], X[1400:], y[1400:]

encoder = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 48))
opt = torch.optim.Adam(encoder.parameters(), lr=1e-3)


def two_views(x):
    return (x + 0.3 * torch.randn_like(x) for _ in range(2))


for epoch in range(8):
    encoder.train()
    total = 0.0
    batches = torch.randperm(len(X_tr)).split(100)
    for idx in batches:
        a, b = (F.normalize(encoder(v), dim=1) for v in two_views(X_tr[idx]))
        loss = F.cross_entropy(a @ b.T / 0.2, torch.arange(len(idx)))
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    print(f"contrastive epoch {epoch}: {total / len(batches):.4f}")

encoder.eval()
encoder.requires_grad_(False)
probe = nn.Linear(48, 10)
with torch.no_grad():
    F_tr, F_va = encoder(X_tr), encoder(X_va)
    scale = F_tr.std()
probe_opt = torch.optim.Adam(probe.parameters(), lr=1e-2)
for epoch in range(12):
    probe.train()
    for idx in torch.randperm(len(X_tr)).split(50):
        loss = F.cross_entropy(probe(F_tr[idx] / scale), y_tr[idx])
        probe_opt.zero_grad()
        loss.backward()
        probe_opt.step()
    probe.eval()
    with torch.no_grad():
        acc = (probe(F_va / scale).argmax(1) == y_va).float().mean().item()
    if epoch % 3 == 2:
        print(f"probe epoch {epoch + 1}: loss {loss.item():.4f} val acc {acc:.4f}")
