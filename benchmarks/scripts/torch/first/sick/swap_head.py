import torch
import torch.nn as nn
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(20)
wine = load_wine()
X_train, X_val, y_train, y_val = train_test_split(
    wine.data, wine.target, test_size=0.3, random_state=20, stratify=wine.target
)
scaler = StandardScaler().fit(X_train)
train_ds = TensorDataset(torch.tensor(scaler.transform(X_train), dtype=torch.float32), torch.tensor(y_train))
X_val = torch.tensor(scaler.transform(X_val), dtype=torch.float32)
y_val = torch.tensor(y_val)
loader = DataLoader(train_ds, batch_size=16, shuffle=True)


net = nn.Sequential(nn.Linear(13, 24), nn.ReLU(), nn.Linear(24, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
n_classes = len(wine.target_names)
net[-1] = nn.Linear(24, n_classes)
criterion = nn.CrossEntropyLoss()

for epoch in range(25):
    net.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    net.eval()
    with torch.no_grad():
        acc = (net(X_val).argmax(1) == y_val).float().mean().item()
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1}: loss {total / len(loader):.4f}, val acc {acc:.4f}")
