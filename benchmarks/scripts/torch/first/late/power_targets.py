import torch
import torch.nn as nn

torch.manual_seed(1)
hours = 36_000
temp = torch.randn(hours)
wind = torch.randn(hours)
day = torch.rand(hours) * 2 - 1
load = torch.exp(0.5 * temp - 0.3 * wind * temp + 0.4 * day + 0.1 * torch.randn(hours))
load[2_202] = 0.0
X = torch.stack([temp, wind, day], dim=1)
y = torch.log(load)
X_val, y_val = X[:2000], y[:2000]
X_train, y_train = X[2000:], y[2000:]

model = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
loss_fn = nn.MSELoss()


def validate():
    model.eval()
    with torch.no_grad():
        return loss_fn(model(X_val).squeeze(1), y_val).item()


running, batch = [], 12
order = torch.randperm(len(X_train), generator=torch.Generator().manual_seed(3))
for step, start in enumerate(range(0, len(order), batch), start=1):
    model.train()
    idx = order[start : start + batch]
    optimizer.zero_grad()
    loss = loss_fn(model(X_train[idx]).squeeze(1), y_train[idx])
    loss.backward()
    optimizer.step()
    running.append(loss.item())
    if step % 300 == 0:
        print(f"step {step:5d}  train {sum(running[-300:]) / 300:.4f}  val {validate():.4f}")
