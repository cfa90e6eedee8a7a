import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = make_classification(2000, 24, n_informative=14, n_classes=5, class_sep=1.5, random_state=3)
X_tr, X_va, y_tr, y_va = train_test_split(X, y, test_size=0.2, random_state=3, stratify=y)
mu, sd = X_tr.mean(0), X_tr.std(0)
train_ds = TensorDataset(torch.tensor((X_tr - mu) / sd, dtype=torch.float32), torch.tensor(y_tr))
val_ds = TensorDataset(torch.tensor((X_va - mu) / sd, dtype=torch.float32), torch.tensor(y_va))
train_dl = DataLoader(train_ds, batch_size=64, shuffle=True)
val_dl = DataLoader(val_ds, batch_size=200)

model = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 5))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=8, gamma=0.5)

for epoch in range(20):
    model.train()
    losses = []
    for xb, yb in train_dl:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())

    model.eval()
    with torch.no_grad():
        hits = sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in val_dl)
    if epoch % 2 == 1:
        print(f"Epoch {epoch + 1}: train loss {sum(losses) / len(losses):.4f}, val acc {hits / len(val_ds):.4f}")
