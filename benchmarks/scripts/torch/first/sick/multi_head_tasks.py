import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

TASKS = {"digit": 10, "even": 2, "large": 2}


class SharedNet(nn.Module):
    def __init__(self, tasks, dim=8):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.fc = nn.Linear(8 * 16, dim)
        self.heads = {name: nn.Linear(dim, k) for name, k in tasks.items()}

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv(x)), 2)
        x = torch.tanh(self.fc(x.flatten(1)))
        return {name: head(x) for name, head in self.heads.items()}


def targets_of(y):
    return {"digit": y, "even": (y % 2 == 0).long(), "large": (y >= 5).long()}


def total_loss(outputs, y):
    t = targets_of(y)
    return sum(F.cross_entropy(outputs[k], t[k]) for k in outputs) / len(outputs)


torch.manual_seed(99)
bunch = load_digits()
x = torch.tensor(bunch.images, dtype=torch.float32).unsqueeze(1) / 8 - 1
y = torch.tensor(bunch.target)
perm = torch.randperm(len(y))
x, y = x[perm], y[perm]
train_loader = DataLoader(TensorDataset(x[:1440], y[:1440]), batch_size=36, shuffle=True)
val_loader = DataLoader(TensorDataset(x[1440:], y[1440:]), batch_size=128)

model = SharedNet(TASKS)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(8):
    model.train()
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = total_loss(model(xb), yb)
        loss.backward()
        optimizer.step()
    model.eval()
    hits = dict.fromkeys(TASKS, 0)
    with torch.no_grad():
        for xb, yb in val_loader:
            out, t = model(xb), targets_of(yb)
            for k in TASKS:
                hits[k] += (out[k].argmax(1) == t[k]).sum().item()
    accs = "  ".join(f"{k} {v / 357:.3f}" for k, v in hits.items())
    print(f"epoch {epoch}  loss {loss.item():.4f}  val acc: {accs}")
