import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(23)
n = 2000
x = torch.randn(n, 8)
clean = torch.sin(x[:, 0] * 2) + x[:, 1] * x[:, 2] * 0.5 + 0.3 * x[:, 3]
noise = 0.1 * torch.randn(n) + torch.where(torch.rand(n) < 0.02, 15.0 * torch.randn(n).sign(), torch.zeros(n))
y = clean + noise
train_loader = DataLoader(TensorDataset(x[:1600], y[:1600]), batch_size=32, shuffle=True)
x_val, y_val = x[1600:], clean[1600:]

model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
loss_fn = nn.MSELoss()

for epoch in range(25):
    model.train()
    epoch_losses = []
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = loss_fn(model(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        epoch_losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        val_mae = (model(x_val).squeeze(1) - y_val).abs().mean().item()
    median = torch.tensor(epoch_losses).median().item()
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1}: median loss {median:.4f}  val MAE {val_mae:.4f}")
