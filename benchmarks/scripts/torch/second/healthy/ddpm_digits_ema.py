"""Diffusion on 8x8 digits with class conditioning, dropped labels and an exponential average of the weights."""

import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

STEPS = 200


def cosine_alphas_bar(steps, s=0.008):
    t = torch.linspace(0, 1, steps + 1)
    f = torch.cos((t + s) / (1 + s) * math.pi / 2) ** 2
    return (f / f[0])[1:].clamp(min=1e-4)


class ResBlock(nn.Module):
    def __init__(self, channels, emb):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, channels), nn.GroupNorm(4, channels)
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.emb = nn.Linear(emb, channels)
        nn.init.zeros_(self.conv2.weight)
        nn.init.zeros_(self.conv2.bias)

    def forward(self, x, e):
        h = self.conv1(F.silu(self.norm1(x))) + self.emb(e)[:, :, None, None]
        return x + self.conv2(F.silu(self.norm2(h)))


class Net(nn.Module):
    def __init__(self, channels=32, emb=64, classes=10):
        super().__init__()
        self.register_buffer("freqs", torch.exp(-math.log(1000) * torch.arange(emb // 2) / (emb // 2)))
        self.time = nn.Sequential(nn.Linear(emb, emb), nn.SiLU(), nn.Linear(emb, emb))
        self.label = nn.Embedding(classes + 1, emb)
        self.inp = nn.Conv2d(1, channels, 3, padding=1)
        self.blocks = nn.ModuleList(ResBlock(channels, emb) for _ in range(3))
        self.out = nn.Sequential(nn.GroupNorm(4, channels), nn.SiLU(), nn.Conv2d(channels, 1, 3, padding=1))

    def forward(self, x, t, y):
        a = t[:, None] * self.freqs
        e = F.silu(self.time(torch.cat([a.sin(), a.cos()], dim=1)) + self.label(y))
        h = self.inp(x)
        for block in self.blocks:
            h = block(h, e)
        return self.out(h)


class EMA:
    def __init__(self, model, decay):
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for a, b in zip(self.model.parameters(), model.parameters()):
            a.lerp_(b, 1 - self.decay)


def diffusion_loss(model, x0, y, alphas_bar, generator=None):
    t = torch.randint(0, STEPS, (len(x0),), generator=generator)
    noise = torch.randn(x0.shape, generator=generator)
    ab = alphas_bar[t][:, None, None, None]
    return F.mse_loss(model(ab.sqrt() * x0 + (1 - ab).sqrt() * noise, t, y), noise)


def main(iterations=500, batch_size=32):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    digits = load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 8.0 - 1.0
    y = torch.tensor(digits.target)
    order = torch.randperm(len(x))
    x, y = x[order], y[order]
    x_val, y_val, x, y = x[:297], y[:297], x[297:], y[297:]
    alphas_bar = cosine_alphas_bar(STEPS)

    model = Net()
    ema = EMA(model, 0.99)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(1.0, (i + 1) / 50))
    running = 0.0
    for i in range(1, iterations + 1):
        pick = torch.randint(0, len(x), (batch_size,))
        labels = torch.where(torch.rand(batch_size) < 0.1, 10, y[pick])
        loss = diffusion_loss(model, x[pick], labels, alphas_bar)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        warmup.step()
        ema.update(model)
        running += loss.item()
        if i % 100 == 0:
            with torch.no_grad():
                val = diffusion_loss(ema.model, x_val, y_val, alphas_bar, torch.Generator().manual_seed(1))
            print(f"{i}: loss {running / 100:.4f}  averaged weights on validation {val:.4f}")
            running = 0.0


if __name__ == "__main__":
    main()
