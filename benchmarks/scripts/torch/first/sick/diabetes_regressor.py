import torch
import torch.nn as nn
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

torch.manual_seed(4)
X, y = load_diabetes(return_X_y=True)
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.25, random_state=4)
mx, sx = X_train.mean(0), X_train.std(0)
my, sy = y_train.mean(), y_train.std()
X_train = torch.tensor((X_train - mx) / sx, dtype=torch.float32)
X_val = torch.tensor((X_val - mx) / sx, dtype=torch.float32)
y_train = torch.tensor((y_train - my) / sy, dtype=torch.float32).unsqueeze(1)
y_val = torch.tensor((y_val - my) / sy, dtype=torch.float32).unsqueeze(1)

model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
loss_fn = nn.MSELoss()
batch_size = 32

for epoch in range(30):
    model.train()
    perm = torch.randperm(len(X_train))
    train_loss = 0.0
    for i in range(0, len(perm), batch_size):
        idx = perm[i : i + batch_size]
        optimizer.zero_grad()
        loss = loss_fn(model(X_train[idx]), y_train[idx])
        loss.backward()
        optimizer.step()
        train_loss += loss.item() * len(idx)
    model.eval()
    val_pred = model(X_val)
    val_loss = loss_fn(val_pred, y_val).item()
    r2 = 1 - val_loss / y_val.var(unbiased=False).item()
    if (epoch + 1) % 5 == 0:
        print(f"epoch {epoch + 1:3d} | train {train_loss / len(perm):.4f} | val {val_loss:.4f} | R2 {r2:.3f}")
