import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_moons

torch.manual_seed(0)
torch.set_num_threads(1)


class TimeEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        half = dim // 2
        self.register_buffer("freqs", torch.exp(-math.log(1000) * torch.arange(half) / (half - 1)))

    def forward(self, t):
        args = t[:, None].float() * self.freqs[None]
        return torch.cat([args.sin(), args.cos()], dim=-1)


class Denoiser(nn.Module):
    def __init__(self, dim=2, hidden=96, t_dim=32):
        super().__init__()
        self.time = nn.Sequential(TimeEmbedding(t_dim), nn.Linear(t_dim, hidden), nn.SiLU())
        self.inp = nn.Linear(dim, hidden)
        self.blocks = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(3))
        self.out = nn.Linear(hidden, dim)

    def forward(self, x, t):
        h = self.inp(x) + self.time(t)
        for block in self.blocks:
            h = h + F.silu(block(h))
        return self.out(h)


class Diffusion(nn.Module):
    def __init__(self, model, timesteps=100):
        super().__init__()
        self.model = model
        self.timesteps = timesteps
        betas = torch.linspace(1e-4, 0.06, timesteps)
        alphas = 1.0 - betas
        self.register_buffer("betas", betas)
        self.register_buffer("alphas", alphas)
        self.register_buffer("alphas_bar", torch.cumprod(alphas, dim=0))

    def q_sample(self, x0, t, noise=None):
        if noise is None:
            noise = torch.randn_like(x0)
        ab = self.alphas_bar[t][:, None]
        return ab.sqrt() * x0 + (1 - ab).sqrt() * noise

    def p_losses(self, x0, t):
        noise = torch.randn_like(x0)
        xt = self.q_sample(x0, t)
        predicted = self.model(xt, t)
        return F.mse_loss(predicted, noise)

    def forward(self, x0):
        t = torch.randint(0, self.timesteps, (len(x0),))
        return self.p_losses(x0, t)

    @torch.no_grad()
    def sample(self, n):
        x = torch.randn(n, 2)
        for i in reversed(range(self.timesteps)):
            t = torch.full((n,), i)
            eps = self.model(x, t)
            mean = (x - self.betas[i] / (1 - self.alphas_bar[i]).sqrt() * eps) / self.alphas[i].sqrt()
            x = mean + self.betas[i].sqrt() * torch.randn_like(x) if i > 0 else mean
        return x


def nearest(a, b):
    """Mean distance from the points of a to the nearest ones of b."""
    return torch.cdist(a, b).min(dim=1).values.mean().item()


points, _ = make_moons(n_samples=4000, noise=0.05, random_state=0)
points = torch.tensor(points, dtype=torch.float32)
points = (points - points.mean(0)) / points.std(0)

diffusion = Diffusion(Denoiser())
optimizer = torch.optim.AdamW(diffusion.parameters(), lr=1e-3)
steps = 2500
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps, eta_min=1e-5)

running = None
for step in range(1, steps + 1):
    batch = points[torch.randint(0, len(points), (128,))]
    loss = diffusion(batch)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(diffusion.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    running = loss.item() if running is None else 0.98 * running + 0.02 * loss.item()
    if step % 500 == 0:
        print(f"step {step}: loss {running:.4f}")

diffusion.eval()
samples = diffusion.sample(1000)
print(f"samples to data: {nearest(samples, points):.4f}")
