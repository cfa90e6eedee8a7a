import math

import torch
import torch.nn as nn

torch.manual_seed(2)
LATENT, BATCH = 4, 128


def ring(n):
    a = 2 * math.pi * torch.rand(n)
    return torch.stack([a.cos(), a.sin()], 1) * 1.4 + 0.08 * torch.randn(n, 2)


generator = nn.Sequential(nn.Linear(LATENT, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
critic = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
opt_c = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
real_label, fake_label = torch.full((BATCH, 1), 0.9), torch.zeros(BATCH, 1)

for step in range(1, 1501):
    generator.train()
    with torch.no_grad():
        fake = generator(torch.randn(BATCH, LATENT))
    loss_c = bce(critic(ring(BATCH)), real_label) + bce(critic(fake), fake_label)
    opt_c.zero_grad()
    loss_c.backward()
    opt_c.step()

    loss_g = bce(critic(generator(torch.randn(BATCH, LATENT))), torch.ones(BATCH, 1))
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()

    if step % 300 == 0:
        generator.eval()
        with torch.no_grad():
            radius = generator(torch.randn(500, LATENT)).norm(dim=1)
        print(f"step {step}: critic {loss_c.item():.3f} generator {loss_g.item():.3f} radius {radius.mean():.3f}")
