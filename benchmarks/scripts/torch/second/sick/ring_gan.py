import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(9)
torch.set_num_threads(1)

Z_DIM = 8
MODES = torch.tensor([[math.cos(2 * math.pi * k / 8), math.sin(2 * math.pi * k / 8)] for k in range(8)]) * 1.5


def real_points(n):
    return MODES[torch.randint(0, 8, (n,))] + 0.08 * torch.randn(n, 2)


class Generator(nn.Module):
    def __init__(self, hidden=96):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(Z_DIM, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 2)
        )

    def forward(self, z):
        return self.net(z)


class Discriminator(nn.Module):
    def __init__(self, hidden=96):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, 1)
        )

    def forward(self, x):
        return torch.sigmoid(self.net(x)).squeeze(1)


def train_discriminator(G, D, opt, n):
    real = real_points(n)
    with torch.no_grad():
        fake = G(torch.randn(n, Z_DIM))
    loss_real = F.binary_cross_entropy_with_logits(D(real), torch.ones(n))
    loss_fake = F.binary_cross_entropy_with_logits(D(fake), torch.zeros(n))
    loss = loss_real + loss_fake
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


def train_generator(G, D, opt, n):
    fake = G(torch.randn(n, Z_DIM))
    loss = F.binary_cross_entropy_with_logits(D(fake), torch.ones(n))
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


@torch.no_grad()
def quality(G, n=2000):
    dist, which = torch.cdist(G(torch.randn(n, Z_DIM)), MODES).min(dim=1)
    good = dist < 0.3
    return good.float().mean().item(), which[good].unique().numel()


def main(steps=3000, batch=128):
    G, D = Generator(), Discriminator()
    opt_g = torch.optim.Adam(G.parameters(), lr=5e-4, betas=(0.5, 0.999))
    opt_d = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.999))
    d_avg = g_avg = 0.0
    for step in range(1, steps + 1):
        d_loss = train_discriminator(G, D, opt_d, batch)
        g_loss = train_generator(G, D, opt_g, batch)
        d_avg = 0.99 * d_avg + 0.01 * d_loss
        g_avg = 0.99 * g_avg + 0.01 * g_loss
        if step % 500 == 0:
            share, modes = quality(G)
            print(f"{step}: D {d_avg:.3f}  G {g_avg:.3f}  good samples {share:.2f}  modes {modes}/8")


if __name__ == "__main__":
    main()
