import torch
import torch.nn as nn
import torch.nn.functional as F


def positive_weight(y):
    pos = y.sum()
    w = len(y) / (2.0 * pos)
    return w


def transactions(n, share, generator):
    y = (torch.rand(n, generator=generator) < share).float()
    x = torch.randn(n, 9, generator=generator)
    x[:, :3] += 1.1 * y.unsqueeze(1)
    x[:, 3] *= 1 + y
    return x, y


torch.manual_seed(6)
gen = torch.Generator().manual_seed(18)
x_val, y_val = transactions(2000, 0.3, torch.Generator().manual_seed(16))
net = nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
smooth = None

for step in range(1, 4001):
    net.train()
    x, y = transactions(24, 0.3, gen)
    w = positive_weight(y)
    per_sample = F.binary_cross_entropy_with_logits(net(x).squeeze(1), y, reduction="none")
    loss = (per_sample * (w * y + (1 - y))).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    smooth = loss.item() if smooth is None else 0.99 * smooth + 0.01 * loss.item()
    if step % 250 == 0:
        net.eval()
        with torch.no_grad():
            pred = net(x_val).squeeze(1) > 0
        tpr = pred[y_val == 1].float().mean().item()
        tnr = (~pred[y_val == 0]).float().mean().item()
        print(f"step {step}: loss {smooth:.4f} balanced acc {(tpr + tnr) / 2:.3f}")
