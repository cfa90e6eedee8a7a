import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
d = load_digits()
X = torch.tensor(d.images, dtype=torch.float32).unsqueeze(1) / 8.0 - 1.0
y = torch.tensor(d.target)
idx_train, idx_val = train_test_split(range(len(y)), test_size=0.2, random_state=1, stratify=d.target)
train_loader = DataLoader(TensorDataset(X[idx_train], y[idx_train]), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(X[idx_val], y[idx_val]), batch_size=180)

model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(256, 32),
    nn.ReLU(),
    nn.Linear(32, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=2.0, momentum=0.9)

for epoch in range(8):
    model.train()
    total = 0.0
    for images, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        acc = sum((model(x).argmax(1) == t).sum().item() for x, t in val_loader) / len(idx_val)
    print(f"epoch {epoch + 1}: loss {total / len(train_loader):.4f} val acc {acc:.4f}")
