import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
dataset = TensorDataset(torch.tensor(X / 8.0 - 1.0, dtype=torch.float32), torch.tensor(y))
n = len(dataset)
train_idx = torch.randperm(n)[:1300]
val_idx = torch.randperm(n)[1300:]
train_loader = DataLoader(Subset(dataset, train_idx.tolist()), batch_size=50, shuffle=True)
val_loader = DataLoader(Subset(dataset, val_idx.tolist()), batch_size=100)

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(12):
    model.train()
    total = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    correct = 0
    with torch.no_grad():
        for xb, yb in val_loader:
            correct += (model(xb).argmax(1) == yb).sum().item()
    print(f"epoch {epoch + 1}: loss {total / len(train_loader):.4f} val acc {correct / len(val_idx):.4f}")
