# %% [markdown]
# # Blobs with a small residual network

# %%
import torch
import torch.nn as nn
from sklearn.datasets import make_blobs

_ = torch.manual_seed(5)

# %%
pts, lab = make_blobs(n_samples=1500, centers=6, n_features=8, cluster_std=3.0, random_state=5)
pts = torch.tensor(pts, dtype=torch.float32)
lab = torch.tensor(lab)
perm = torch.randperm(len(pts))
tr, va = perm[:1200], perm[1200:]
mu, sd = pts[tr].mean(0), pts[tr].std(0)
pts = (pts - mu) / sd


# %%
class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.f = nn.Sequential(nn.Linear(d, 2 * d), nn.ReLU(), nn.Linear(2 * d, d))

    def forward(self, x):
        return x + self.f(self.norm(x))


net = nn.Sequential(nn.Linear(8, 32), Block(32), Block(32), nn.LayerNorm(32), nn.Linear(32, 6))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
ce = nn.CrossEntropyLoss()


# %%
def train_step(x, y):
    net.train()
    out = net(x)
    loss = ce(out, y)
    opt.zero_grad()
    opt.step()
    loss.backward()
    return loss.item()


# %%
history = []
for it in range(400):
    batch = tr[torch.randint(len(tr), (64,))]
    history.append(train_step(pts[batch], lab[batch]))
    if it % 80 == 79:
        net.eval()
        with torch.no_grad():
            acc = (net(pts[va]).argmax(1) == lab[va]).float().mean()
        print(f"iter {it + 1}: loss {sum(history[-80:]) / 80:.3f}  val acc {acc:.3f}")
