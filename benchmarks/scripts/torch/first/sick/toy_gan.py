import math

import torch
import torch.nn as nn

torch.manual_seed(3)


def real_batch(n):
    angle = torch.randint(0, 4, (n,)).float() * math.pi / 2
    centre = torch.stack([angle.cos(), angle.sin()], 1) * 1.4
    return centre + 0.1 * torch.randn(n, 2)


G = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
D = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
opt_g = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(128, 1), torch.zeros(128, 1)


def distance_to_ring(samples):
    return (samples.norm(dim=1) - 1.4).abs().mean().item()


for step in range(1500):
    G.train()
    real, fake = real_batch(128), G(torch.randn(128, 4)).detach()
    loss_d = bce(D(real), ones) + bce(D(fake), zeros)
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()

    loss_g = bce(D(G(torch.randn(128, 4))), ones)
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()

    if (step + 1) % 250 == 0:
        G.eval()
        with torch.no_grad():
            dist = distance_to_ring(G(torch.randn(512, 4)))
        print(f"step {step + 1} d {loss_d.item():.3f} g {loss_g.item():.3f} distance to ring {dist:.3f}")
