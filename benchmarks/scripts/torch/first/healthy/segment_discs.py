import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def make_images(n, seed, size=16):
    g = torch.Generator().manual_seed(seed)
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    cy, cx = torch.rand(2, n, 1, 1, generator=g) * 8 + 4
    r = 3 + 2 * torch.rand(n, 1, 1, generator=g)
    mask = ((yy - cy) ** 2 + (xx - cx) ** 2 < r**2).float()
    image = mask * 1.5 - 0.5 + 0.6 * torch.randn(n, size, size, generator=g)
    return TensorDataset(image.unsqueeze(1), mask.unsqueeze(1))


class UNetish(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(1, 12, 3, padding=1)
        self.mid = nn.Conv2d(12, 24, 3, padding=1)
        self.up = nn.ConvTranspose2d(24, 12, 2, stride=2)
        self.out = nn.Conv2d(24, 1, 3, padding=1)

    def forward(self, x):
        a = F.relu(self.down(x))
        b = F.relu(self.mid(F.max_pool2d(a, 2)))
        return self.out(torch.cat([a, F.relu(self.up(b))], dim=1))


def iou(logits, mask):
    pred = logits > 0
    inter = (pred & (mask > 0)).sum().item()
    return inter / (pred | (mask > 0)).sum().item()


torch.manual_seed(0)
train_loader = DataLoader(make_images(500, 0), batch_size=20, shuffle=True)
val_loader = DataLoader(make_images(100, 1), batch_size=100)
model = UNetish()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(6):
    model.train()
    total = 0.0
    for image, mask in train_loader:
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(image), mask)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        score = sum(iou(model(image), mask) for image, mask in val_loader) / len(val_loader)
    print(f"epoch {epoch}: loss {total / len(train_loader):.4f} IoU {score:.3f}")
