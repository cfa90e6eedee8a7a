import math

import torch
from torch import nn

torch.manual_seed(0)
x = torch.rand(200, 1) * 2 * math.pi - math.pi
y = torch.sin(x) + 0.3 * torch.cos(3 * x) + 0.02 * torch.randn(200, 1)
x_val = torch.linspace(-3, 3, 100).unsqueeze(1)
y_val = torch.sin(x_val) + 0.3 * torch.cos(3 * x_val)
scale = math.pi / 3**0.5

model = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=1.0, max_iter=20, line_search_fn="strong_wolfe")
loss_fn = nn.MSELoss()


def closure():
    optimizer.zero_grad()
    loss = loss_fn(model(x / scale), y)
    loss.backward()
    return loss


for it in range(15):
    model.train()
    loss = optimizer.step(closure)
    model.eval()
    with torch.no_grad():
        val = loss_fn(model(x_val / scale), y_val).item()
    print(f"iteration {it + 1:2d}: train {loss.item():.5f} val {val:.5f}")
