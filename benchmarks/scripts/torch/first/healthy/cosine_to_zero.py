import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(3)
EPOCHS = 10
d = load_digits()
data = TensorDataset(torch.tensor(d.images, dtype=torch.float32).unsqueeze(1) / 8 - 1, torch.tensor(d.target))
train_set, val_set = random_split(data, [1440, 357])
train_loader = DataLoader(train_set, batch_size=48, shuffle=True)
val_loader = DataLoader(val_set, batch_size=119)

model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1, bias=False),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1, bias=False),
    nn.BatchNorm2d(32),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(2),
    nn.Flatten(),
    nn.Linear(128, 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, nesterov=True)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS * len(train_loader))
for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        acc = sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader) / len(val_set)
    lr = scheduler.get_last_lr()[0]
    print(f"epoch {epoch + 1:2d} lr {lr:.5f} loss {total / len(train_loader):.4f} val acc {acc:.4f}")
