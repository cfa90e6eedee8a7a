import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

WIDTH, EPOCHS, DECAY = 256, 60, 0.0
torch.manual_seed(0)
X, y = make_classification(720, 20, n_informative=5, n_redundant=0, flip_y=0.15, class_sep=1.5, random_state=2)
X_train, X_val, y_train, y_val = train_test_split(X, y, train_size=120, random_state=0, stratify=y)
mean, std = X_train.mean(0), X_train.std(0)
X_train = torch.tensor((X_train - mean) / std, dtype=torch.float32)
X_val = torch.tensor((X_val - mean) / std, dtype=torch.float32)
y_train, y_val = torch.tensor(y_train), torch.tensor(y_val)
loader = DataLoader(TensorDataset(X_train, y_train), batch_size=20, shuffle=True)

model = nn.Sequential(nn.Linear(20, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=DECAY)
criterion = nn.CrossEntropyLoss()

for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        out = model(X_val)
        val_loss = criterion(out, y_val).item()
        val_acc = (out.argmax(1) == y_val).float().mean().item()
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1:3d}: train {total / len(loader):.4f} val {val_loss:.4f} acc {val_acc:.3f}")
