import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(8)
d = load_digits()
data = TensorDataset(torch.tensor(d.data / 8 - 1, dtype=torch.float32), torch.tensor(d.target))
train_set, val_set = random_split(data, [1400, 397])
train_loader = DataLoader(train_set, batch_size=50, shuffle=True)
val_loader = DataLoader(val_set, batch_size=200)
model = nn.Sequential(nn.Linear(64, 96), nn.GELU(), nn.Linear(96, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(8):
    model.train()
    total = 0.0
    for x, y in train_loader:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
            loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    hits = 0
    with torch.no_grad(), torch.autocast(device_type="cpu", dtype=torch.bfloat16):
        for x, y in val_loader:
            hits += (model(x).argmax(1) == y).sum().item()
    print(f"epoch {epoch} loss {total / len(train_loader):.4f} val acc {hits / 397:.4f}")
