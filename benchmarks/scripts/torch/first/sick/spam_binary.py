import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(13)
X, y = make_classification(2000, 30, n_informative=12, class_sep=1.3, random_state=13)
X = torch.tensor(X, dtype=torch.float32)
y = torch.tensor(y)
X = (X - X[:1600].mean(0)) / X[:1600].std(0)
train_loader = DataLoader(TensorDataset(X[:1600], y[:1600]), batch_size=50, shuffle=True)
val_loader = DataLoader(TensorDataset(X[1600:], y[1600:]), batch_size=100)

model = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)


def accuracy(loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for inputs, labels in loader:
            out = model(inputs)
            pred = out.argmax(dim=1)
            correct += (pred == labels).sum().item()
    return correct / len(loader.dataset)


for epoch in range(12):
    model.train()
    total = 0.0
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels.float().unsqueeze(1))
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch + 1:2d}: loss {total / len(train_loader):.4f}  val accuracy {accuracy(val_loader):.4f}")
