import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
X_tr, X_va, y_tr, y_va = train_test_split(X / 8 - 1, y, test_size=0.2, random_state=0, stratify=y)
train_ds = TensorDataset(torch.tensor(X_tr, dtype=torch.float32), torch.tensor(y_tr))
val_ds = TensorDataset(torch.tensor(X_va, dtype=torch.float32), torch.tensor(y_va))
train_loader = DataLoader(train_ds, batch_size=16, shuffle=True)
val_loader = DataLoader(val_ds, batch_size=180)

model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Dropout(0.2), nn.Linear(48, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()
accum = 4

for epoch in range(12):
    model.train()
    optimizer.zero_grad()
    total = 0.0
    for i, (xb, yb) in enumerate(train_loader):
        loss = criterion(model(xb), yb)
        (loss / accum).backward()
        total += loss.item()
        if (i + 1) % accum == 0 or i + 1 == len(train_loader):
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        acc = sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in val_loader) / len(val_ds)
    print(f"epoch {epoch + 1:2d} loss {total / len(train_loader):.4f} val acc {acc:.4f}")
