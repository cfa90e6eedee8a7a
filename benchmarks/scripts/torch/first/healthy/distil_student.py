import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(4)
d = load_digits()
order = torch.randperm(len(d.target))
X = torch.tensor(d.data, dtype=torch.float32)[order] / 8 - 1
y = torch.tensor(d.target)[order]
loader = DataLoader(TensorDataset(X[:1400], y[:1400]), batch_size=50, shuffle=True)
X_val, y_val = X[1400:], y[1400:]
teacher = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Dropout(0.2), nn.Linear(96, 10))
student = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))


def accuracy(net):
    net.eval()
    with torch.no_grad():
        return (net(X_val).argmax(1) == y_val).float().mean().item()


opt = torch.optim.Adam(teacher.parameters(), lr=2e-3)
for epoch in range(8):
    teacher.train()
    for xb, yb in loader:
        opt.zero_grad()
        loss = F.cross_entropy(teacher(xb), yb)
        loss.backward()
        opt.step()
    print(f"teacher epoch {epoch}: loss {loss.item():.4f} acc {accuracy(teacher):.4f}")

teacher.eval()
opt = torch.optim.Adam(student.parameters(), lr=4e-3)
T = 2.0
for epoch in range(12):
    student.train()
    for xb, yb in loader:
        with torch.no_grad():
            soft = F.softmax(teacher(xb) / T, dim=1)
        out = student(xb)
        kd = F.kl_div(F.log_softmax(out / T, dim=1), soft, reduction="batchmean") * T * T
        loss = 0.7 * kd + 0.3 * F.cross_entropy(out, yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"student epoch {epoch}: loss {loss.item():.4f} acc {accuracy(student):.4f}")
