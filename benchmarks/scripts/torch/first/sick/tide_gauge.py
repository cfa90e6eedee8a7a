# ---
# Tide gauge forecast, exported from a notebook
# ---
import math

import torch
import torch.nn as nn

torch.manual_seed(16)

# cell 1: data
t = torch.arange(2600).float()
tide = torch.sin(2 * math.pi * t / 12.4) + 0.4 * torch.sin(2 * math.pi * t / 29.5) + 0.08 * torch.randn(2600)
tide = (tide - tide[:2000].mean()) / tide[:2000].std()
frames = tide.unfold(0, 21, 1)
train_frames, val_frames = frames[:1980], frames[2001:]

# cell 2: model
net = nn.Sequential(nn.Linear(20, 40), nn.ReLU(), nn.Linear(40, 1))
lr = 1e-5
sgd = torch.optim.SGD(net.parameters(), lr=lr)
loss_fn = nn.MSELoss()


# cell 3: training
def one_epoch():
    net.train()
    out = []
    for rows in torch.randperm(len(train_frames)).split(36):
        chunk = train_frames[rows]
        sgd.zero_grad()
        loss = loss_fn(net(chunk[:, :20]), chunk[:, 20:])
        loss.backward()
        sgd.step()
        out.append(loss.item())
    return sum(out) / len(out)


for epoch in range(15):
    train_loss = one_epoch()
    net.eval()
    with torch.no_grad():
        val_loss = loss_fn(net(val_frames[:, :20]), val_frames[:, 20:]).item()
    print(f"epoch {epoch + 1}: train {train_loss:.4f} val {val_loss:.4f}")
