import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
X_tr, X_va, y_tr, y_va = train_test_split(X / 8.0 - 1.0, y, test_size=0.2, random_state=0, stratify=y)
loader = DataLoader(
    TensorDataset(torch.tensor(X_tr, dtype=torch.float32), torch.tensor(y_tr)), batch_size=32, shuffle=True
)
X_va, y_va = torch.tensor(X_va, dtype=torch.float32), torch.tensor(y_va)

policy = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
top_k = 9

for epoch in range(10):
    policy.train()
    total = 0.0
    for xb, yb in loader:
        logits = policy(xb)
        worst = logits.argsort(dim=1)[:, : 10 - top_k]
        pruned = logits.scatter(1, worst, -1e4)
        probs = torch.softmax(pruned, dim=1)
        entropy = -(probs * torch.log(probs)).sum(dim=1).mean()
        loss = nn.functional.cross_entropy(logits, yb) - 0.01 * entropy
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    policy.eval()
    with torch.no_grad():
        acc = (policy(X_va).argmax(1) == y_va).float().mean().item()
    print(f"epoch {epoch}: loss {total / len(loader):.4f} val acc {acc:.4f}")
