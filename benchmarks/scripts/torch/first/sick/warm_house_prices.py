import torch
from sklearn.datasets import make_regression
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(9)

features, price = make_regression(n_samples=1500, n_features=12, n_informative=8, noise=10.0, random_state=9)
features = torch.tensor(features, dtype=torch.float32)
price = torch.tensor(price, dtype=torch.float32)
price = (price - price.mean()) / price.std()
train_ds, val_ds = random_split(TensorDataset(features, price), [1200, 300])
train_loader = DataLoader(train_ds, batch_size=40, shuffle=True)
val_loader = DataLoader(val_ds, batch_size=300)

EPOCHS = 15
model = nn.Sequential(nn.Linear(12, 48), nn.SiLU(), nn.Linear(48, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
total_steps = EPOCHS * len(train_loader)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=total_steps, eta_min=1e-5)
loss_fn = nn.MSELoss()

for epoch in range(1, EPOCHS + 1):
    model.train()
    running = 0.0
    for x, y in train_loader:
        scheduler.step()
        optimizer.zero_grad()
        loss = loss_fn(model(x).squeeze(1), y)
        loss.backward()
        optimizer.step()
        running += loss.item() * len(y)

    model.eval()
    with torch.no_grad():
        val = sum(loss_fn(model(x).squeeze(1), y).item() * len(y) for x, y in val_loader) / len(val_ds)
    lr = optimizer.param_groups[0]["lr"]
    print(f"epoch {epoch:2d}  lr {lr:.5f}  train {running / len(train_ds):.4f}  val {val:.4f}")
