import torch
import torch.nn as nn
from sklearn.datasets import make_moons
from torch.utils.data import DataLoader, TensorDataset


class GatedLayer(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.value = nn.Linear(d_in, d_out)
        self.gate = nn.Linear(d_in, d_out)

    def forward(self, x):
        gate = torch.sigmoid(self.gate(x))
        value = torch.tanh(self.value(x))
        gate *= 0.9
        return gate * value + 0.1 * value


torch.manual_seed(0)
X, y = make_moons(1000, noise=0.15, random_state=0)
X = torch.tensor(X, dtype=torch.float32)
X = (X - X[:800].mean(0)) / X[:800].std(0)
y = torch.tensor(y)
train_loader = DataLoader(TensorDataset(X[:800], y[:800]), batch_size=32, shuffle=True)
model = nn.Sequential(GatedLayer(2, 32), GatedLayer(32, 32), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(15):
    model.train()
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        acc = (model(X[800:]).argmax(1) == y[800:]).float().mean().item()
    print(f"epoch {epoch + 1} loss {loss.item():.4f} val acc {acc:.3f}")
