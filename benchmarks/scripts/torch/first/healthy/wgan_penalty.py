import torch
import torch.nn as nn

torch.manual_seed(9)


def real(n):
    k = torch.randint(0, 2, (n, 1)).float() * 2 - 1
    return torch.cat([k, -k], 1) + 0.2 * torch.randn(n, 2)


def penalty(critic, a, b):
    eps = torch.rand(len(a), 1)
    mid = (eps * a + (1 - eps) * b).requires_grad_(True)
    grad = torch.autograd.grad(critic(mid).sum(), mid, create_graph=True)[0]
    return ((grad.pow(2).sum(1) + 1e-12).sqrt() - 1).pow(2).mean()


G = nn.Sequential(nn.Linear(3, 48), nn.ReLU(), nn.Linear(48, 2))
C = nn.Sequential(nn.Linear(2, 48), nn.LeakyReLU(0.2), nn.Linear(48, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1))
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.9))
opt_c = torch.optim.Adam(C.parameters(), lr=1e-3, betas=(0.5, 0.9))

for it in range(1, 401):
    for _ in range(3):
        x, fake = real(64), G(torch.randn(64, 3)).detach()
        loss_c = C(fake).mean() - C(x).mean() + 5.0 * penalty(C, x, fake)
        opt_c.zero_grad()
        loss_c.backward()
        opt_c.step()
    loss_g = -C(G(torch.randn(64, 3))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    if it % 80 == 0:
        with torch.no_grad():
            s = G(torch.randn(1000, 3))
        corr = torch.corrcoef(s.T)[0, 1].item()
        print(f"iter {it}: critic {loss_c.item():+.3f} generator {loss_g.item():+.3f} corr {corr:+.3f}")
