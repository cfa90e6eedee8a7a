"""Pretrain on upright digits, then adapt to upside-down ones with low-rank updates."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


class LoRALinear(nn.Module):
    def __init__(self, base, r=8, alpha=16):
        super().__init__()
        self.base = base
        self.base.weight.requires_grad_(False)
        self.base.bias.requires_grad_(False)
        self.lora_A = nn.Parameter(torch.zeros(r, base.in_features))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, r))
        self.scaling = alpha / r

    def forward(self, x):
        return self.base(x) + (x @ self.lora_A.T) @ self.lora_B.T * self.scaling


class Net(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.fc1 = nn.Linear(64, width)
        self.fc2 = nn.Linear(width, width)
        self.out = nn.Linear(width, 10)

    def forward(self, x):
        x = F.gelu(self.fc1(x))
        x = F.gelu(self.fc2(x))
        return self.out(x)


def add_lora(model, r):
    for p in model.parameters():
        p.requires_grad_(False)
    for name in ("fc1", "fc2", "out"):
        setattr(model, name, LoRALinear(getattr(model, name), r=r))
    return model


def accuracy(model, loader):
    model.eval()
    with torch.no_grad():
        hits = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    model.train()
    return hits / len(loader.dataset)


def fit(model, train_loader, val_loader, epochs, lr, tag):
    params = [p for p in model.parameters() if p.requires_grad]
    print(f"{tag}: {sum(p.numel() for p in params)} trainable parameters")
    opt = torch.optim.AdamW(params, lr=lr, weight_decay=0.0)
    for epoch in range(epochs):
        running = 0.0
        for x, y in train_loader:
            opt.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
            running += loss.item() * len(x)
        print(
            f"{tag} epoch {epoch}: loss {running / len(train_loader.dataset):.4f}"
            f"  val acc {accuracy(model, val_loader):.3f}"
        )


digits = load_digits()
upright = torch.tensor(digits.images, dtype=torch.float32) / 16.0 - 0.3
flipped = torch.flip(upright, dims=(1,))
labels = torch.tensor(digits.target)
order = torch.randperm(len(labels))
train_idx, val_idx = order[:1400], order[1400:]


def loaders(images):
    flat = images.flatten(1)
    return (
        DataLoader(TensorDataset(flat[train_idx], labels[train_idx]), batch_size=32, shuffle=True),
        DataLoader(TensorDataset(flat[val_idx], labels[val_idx]), batch_size=256),
    )


model = Net()
fit(model, *loaders(upright), epochs=8, lr=1e-3, tag="pretrain")
print("before adapting, on flipped digits:", accuracy(model, loaders(flipped)[1]))

model = add_lora(model, r=8)
fit(model, *loaders(flipped), epochs=20, lr=2e-3, tag="adapt")
delta = sum((m.lora_B @ m.lora_A).norm().item() ** 2 for m in model.modules() if isinstance(m, LoRALinear))
print("size of the update:", round(math.sqrt(delta), 3))
