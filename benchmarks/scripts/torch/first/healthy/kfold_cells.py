import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_breast_cancer(return_X_y=True)
scores = []
for fold, (tr, va) in enumerate(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)):
    scaler = StandardScaler().fit(X[tr])
    x_tr = torch.tensor(scaler.transform(X[tr]), dtype=torch.float32)
    x_va = torch.tensor(scaler.transform(X[va]), dtype=torch.float32)
    y_tr, y_va = torch.tensor(y[tr]).float(), torch.tensor(y[va]).float()
    loader = DataLoader(TensorDataset(x_tr, y_tr), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-3)
    loss_fn = nn.BCEWithLogitsLoss()
    for _ in range(12):
        model.train()
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(xb).squeeze(1), yb)
            loss.backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        acc = ((model(x_va).squeeze(1) > 0).float() == y_va).float().mean().item()
    scores.append(acc)
    print(f"fold {fold}: last loss {loss.item():.4f} accuracy {acc:.4f}")
print(f"mean {np.mean(scores):.4f} std {np.std(scores):.4f}")
