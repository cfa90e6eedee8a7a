import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(5)
torch.manual_seed(5)
X, default = make_classification(2000, 12, n_informative=6, flip_y=0.1, class_sep=1.2, random_state=5)
arrears = default * 2.0 + rng.normal(0, 0.05, len(default))
features = np.column_stack([X, arrears])
features = (features - features[:1600].mean(0)) / features[:1600].std(0)

X_all = torch.tensor(features, dtype=torch.float32)
y_all = torch.tensor(default, dtype=torch.float32)
train_loader = DataLoader(TensorDataset(X_all[:1600], y_all[:1600]), batch_size=50, shuffle=True)
val_loader = DataLoader(TensorDataset(X_all[1600:], y_all[1600:]), batch_size=200)

model = nn.Sequential(nn.Linear(X_all.shape[1], 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
criterion = nn.BCEWithLogitsLoss()

for epoch in range(10):
    model.train()
    total = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    hits = 0
    with torch.no_grad():
        for xb, yb in val_loader:
            hits += ((model(xb).squeeze(1) > 0).float() == yb).sum().item()
    print(f"epoch {epoch + 1:2d}: loss {total / len(train_loader):.4f} val acc {hits / 400:.4f}")
