import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler


class Gauges(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        share = torch.tensor([0.6, 0.25, 0.15])
        self.y = torch.multinomial(share, n, replacement=True, generator=g)
        centre = torch.randn(3, 10, generator=torch.Generator().manual_seed(0)) * 0.9
        self.x = centre[self.y] + torch.randn(n, 10, generator=g)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


torch.manual_seed(0)
train_set, val_set = Gauges(3000, 1), Gauges(600, 2)
weight = 1.0 / torch.bincount(train_set.y).float()
sampler = WeightedRandomSampler(weight[train_set.y], num_samples=len(train_set), replacement=True)
train_loader = DataLoader(train_set, batch_size=50, sampler=sampler)
val_loader = DataLoader(val_set, batch_size=200)

model = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
for epoch in range(10):
    model.train()
    total = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    hit, count = torch.zeros(3), torch.zeros(3)
    with torch.no_grad():
        for x, y in val_loader:
            right = model(x).argmax(1) == y
            for c in range(3):
                hit[c] += right[y == c].sum()
                count[c] += (y == c).sum()
    recall = ", ".join(f"{r:.3f}" for r in (hit / count).tolist())
    print(f"epoch {epoch}: loss {total / len(train_loader):.4f} recall per class {recall}")
