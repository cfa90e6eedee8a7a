import copy

import torch
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class EarlyStopping:
    def __init__(self, patience=6):
        self.patience, self.best, self.bad, self.state = patience, float("inf"), 0, None

    def __call__(self, value, model):
        if value < self.best:
            self.best, self.bad, self.state = value, 0, copy.deepcopy(model.state_dict())
        else:
            self.bad += 1
        return self.bad >= self.patience


torch.manual_seed(4)
X, y = load_diabetes(return_X_y=True)
X_tr, X_va, y_tr, y_va = train_test_split(X, y, test_size=0.25, random_state=4)
mx, sx, my, sy = X_tr.mean(0), X_tr.std(0), y_tr.mean(), y_tr.std()
X_tr, X_va = (torch.tensor((a - mx) / sx, dtype=torch.float32) for a in (X_tr, X_va))
y_tr, y_va = (torch.tensor((a - my) / sy, dtype=torch.float32) for a in (y_tr, y_va))
loader = DataLoader(TensorDataset(X_tr, y_tr), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
stopper = EarlyStopping()
for epoch in range(60):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(X_va).squeeze(1), y_va).item()
    if epoch % 3 == 0:
        print(f"epoch {epoch}: train {total / len(loader):.4f} val {val:.4f}")
    if stopper(val, model):
        print("early stop at", epoch)
        break
model.load_state_dict(stopper.state)
print(f"best val {stopper.best:.4f}")
