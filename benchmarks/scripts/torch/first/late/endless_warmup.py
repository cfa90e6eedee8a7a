import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(10)
X, y = load_digits(return_X_y=True)
X_tr, X_va, y_tr, y_va = train_test_split(X / 8 - 1, y, test_size=0.2, random_state=10, stratify=y)
train_loader = DataLoader(
    TensorDataset(torch.tensor(X_tr, dtype=torch.float32), torch.tensor(y_tr)), batch_size=16, shuffle=True
)
X_va, y_va = torch.tensor(X_va, dtype=torch.float32), torch.tensor(y_va)

model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-3)
warmup_steps = 600
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: (step + 1) / warmup_steps)

step = 0
for epoch in range(60):
    model.train()
    total = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
        step += 1
    model.eval()
    with torch.no_grad():
        acc = (model(X_va).argmax(1) == y_va).float().mean().item()
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1:2d} step {step} loss {total / len(train_loader):.4f} val acc {acc:.4f}")
