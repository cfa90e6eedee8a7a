import torch
from torch import nn


class Field(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.out = nn.Linear(width, 1)

    def forward(self, t):
        return self.out(self.inner(t))


def residual(model, t):
    """u'' + 4u = 0"""
    t = t.requires_grad_(True)
    u = model(t)
    du = torch.autograd.grad(u.sum(), t, create_graph=True)[0]
    ddu = torch.autograd.grad(du.sum(), t, create_graph=True)[0]
    return ddu + 4 * u


def start_conditions(model):
    t0 = torch.zeros(1, 1, requires_grad=True)
    u0 = model(t0)
    v0 = torch.autograd.grad(u0.sum(), t0, create_graph=True)[0]
    return (u0 - 1.0).pow(2).mean() + v0.pow(2).mean()


def main():
    torch.manual_seed(0)
    model = Field()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    t_val = torch.linspace(0, 2, 100).unsqueeze(1)
    truth = torch.cos(2 * t_val)
    for step in range(1, 1501):
        model.train()
        t = torch.rand(64, 1) * 2
        loss = residual(model, t).pow(2).mean() + 10 * start_conditions(model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 250 == 0:
            model.eval()
            with torch.no_grad():
                err = (model(t_val) - truth).abs().max().item()
            print(f"step {step}: residual {loss.item():.5f} max error {err:.4f}")


if __name__ == "__main__":
    main()
