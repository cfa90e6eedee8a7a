import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(21)
X, y = make_classification(1100, 20, n_informative=8, n_redundant=4, class_sep=1.6, flip_y=0.1, random_state=21)
X_train, X_val, y_train, y_val = train_test_split(X, y, train_size=300, random_state=21, stratify=y)
mean, std = X_train.mean(0), X_train.std(0)
X_train = torch.tensor((X_train - mean) / std, dtype=torch.float32)
X_val = torch.tensor((X_val - mean) / std, dtype=torch.float32)
y_train, y_val = torch.tensor(y_train), torch.tensor(y_val)
loader = DataLoader(TensorDataset(X_train, y_train), batch_size=30, shuffle=True)

model = nn.Sequential(
    nn.Linear(20, 128),
    nn.ReLU(),
    nn.Dropout(0.5),
    nn.Linear(128, 128),
    nn.ReLU(),
    nn.Dropout(0.5),
    nn.Linear(128, 2),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

model.train()
for epoch in range(40):
    epoch_loss = 0.0
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()

    model.eval()
    with torch.no_grad():
        logits = model(X_val)
        val_loss = criterion(logits, y_val).item()
        val_acc = (logits.argmax(1) == y_val).float().mean().item()
    if epoch % 4 == 3:
        print(f"Epoch [{epoch + 1}/40] loss {epoch_loss / len(loader):.4f} val loss {val_loss:.4f} acc {val_acc:.4f}")
