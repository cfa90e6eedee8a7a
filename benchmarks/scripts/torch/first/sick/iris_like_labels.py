import torch
import torch.nn as nn
from sklearn.datasets import make_blobs
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
points, assignment = make_blobs(n_samples=1200, centers=6, n_features=6, cluster_std=3.0, random_state=0)
raw_labels = assignment + 1
inputs = torch.tensor(points, dtype=torch.float32)
inputs = (inputs - inputs[:1000].mean(0)) / inputs[:1000].std(0)
targets = torch.tensor(raw_labels)
train_loader = DataLoader(TensorDataset(inputs[:1000], targets[:1000]), batch_size=50, shuffle=True)
val_loader = DataLoader(TensorDataset(inputs[1000:], targets[1000:]), batch_size=200)

model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 6))
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(10):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        hits = sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader)
    print(f"epoch {epoch}: loss {loss.item():.4f} val acc {hits / 200:.3f}")

with torch.no_grad():
    confidence = torch.softmax(model(inputs[1000:]), dim=1).max(1).values.mean().item()
print(f"mean confidence {confidence:.3f}")
