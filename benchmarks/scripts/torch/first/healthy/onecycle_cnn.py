import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def bars(n, seed, size=12):
    """Is the bar horizontal, vertical or diagonal?"""
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=g)
    x = 0.5 * torch.randn(n, 1, size, size, generator=g)
    pos = torch.randint(2, size - 2, (n,), generator=g)
    for k in range(n):
        if y[k] == 0:
            x[k, 0, pos[k], :] += 1.5
        elif y[k] == 1:
            x[k, 0, :, pos[k]] += 1.5
        else:
            x[k, 0] += 1.5 * torch.diag(torch.ones(size - abs(int(pos[k]) - 6)), int(pos[k]) - 6)
    return TensorDataset(x, y)


@torch.no_grad()
def evaluate(model, loader):
    was_training = model.training
    model.eval()
    acc = sum((model(x).argmax(1) == y).sum().item() for x, y in loader) / len(loader.dataset)
    model.train(was_training)
    return acc


torch.manual_seed(3)
train_loader = DataLoader(bars(1200, 0), batch_size=30, shuffle=True)
val_loader = DataLoader(bars(300, 1), batch_size=100)
model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, padding=1),
    nn.ReLU(),
    nn.AdaptiveMaxPool2d(2),
    nn.Flatten(),
    nn.Linear(64, 3),
)
epochs = 6
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.05, total_steps=epochs * len(train_loader))
step = 0
model.train()
for _ in range(epochs):
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        step += 1
        if step % 40 == 0:
            acc, lr = evaluate(model, val_loader), scheduler.get_last_lr()[0]
            print(f"step {step} lr {lr:.4f} loss {loss.item():.4f} val acc {acc:.3f}")
