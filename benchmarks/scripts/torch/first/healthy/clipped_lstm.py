import math

import torch
import torch.nn as nn

torch.manual_seed(6)
T, B, CHUNK = 1200, 12, 30
t = torch.arange(T).float()
freq = 0.15 + 0.2 * torch.rand(B, 1)
series = torch.sin(freq * t + 2 * math.pi * torch.rand(B, 1)) * 1.4 + 0.05 * torch.randn(B, T)
train, val = series[:, :1000], series[:, 1000:]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 32, batch_first=True)
        self.out = nn.Linear(32, 1)

    def forward(self, x, state=None):
        h, state = self.lstm(x, state)
        return self.out(h), state


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
loss_fn = nn.MSELoss()
for epoch in range(10):
    model.train()
    state, losses = None, []
    for s in range(0, 1000 - CHUNK, CHUNK):
        x, y = train[:, s : s + CHUNK, None], train[:, s + 1 : s + CHUNK + 1, None]
        pred, state = model(x, state)
        state = tuple(v.detach() for v in state)
        loss = loss_fn(pred, y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        pred, _ = model(val[:, :-1, None])
        val_loss = loss_fn(pred, val[:, 1:, None]).item()
    print(f"epoch {epoch}: train {sum(losses) / len(losses):.4f} val {val_loss:.4f}")
