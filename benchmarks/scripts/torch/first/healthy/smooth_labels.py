import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

config = {"seed": 12, "hidden": 64, "dropout": 0.3, "smoothing": 0.1, "lr": 2e-3, "epochs": 12}
torch.manual_seed(config["seed"])
X, y = load_digits(return_X_y=True)
X_tr, X_va, y_tr, y_va = train_test_split(X / 8 - 1, y, test_size=0.25, random_state=12, stratify=y)
to = lambda a, b: TensorDataset(torch.tensor(a, dtype=torch.float32), torch.tensor(b))  # noqa: E731
train_loader = DataLoader(to(X_tr, y_tr), batch_size=32, shuffle=True)
val_loader = DataLoader(to(X_va, y_va), batch_size=150)

model = nn.Sequential(
    nn.Linear(64, config["hidden"]),
    nn.ReLU(),
    nn.Dropout(config["dropout"]),
    nn.Linear(config["hidden"], 10),
)
train_loss_fn = nn.CrossEntropyLoss(label_smoothing=config["smoothing"])
val_loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=config["lr"], weight_decay=0.01)
for epoch in range(config["epochs"]):
    model.train()
    running = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = train_loss_fn(model(xb), yb)
        loss.backward()
        optimizer.step()
        running += loss.item()
    model.eval()
    val_loss, hits = 0.0, 0
    with torch.no_grad():
        for xb, yb in val_loader:
            out = model(xb)
            val_loss += val_loss_fn(out, yb).item() * len(yb)
            hits += (out.argmax(1) == yb).sum().item()
    n = len(val_loader.dataset)
    print(f"{epoch:2d} train {running / len(train_loader):.4f} val {val_loss / n:.4f} acc {hits / n:.4f}")
