import torch
from torch import nn


class Layout(nn.Module):
    """Finds positions in space for sites of which only distances are known."""

    def __init__(self, n_towns):
        super().__init__()
        self.position = nn.Parameter(torch.randn(n_towns, 3))

    def forward(self, towns):
        p = self.position[towns]
        diff = p.unsqueeze(1) - p.unsqueeze(0)
        return torch.sqrt((diff**2).sum(-1))


def stress(dist, target, use):
    return ((dist - target) ** 2)[use].mean()


def main():
    torch.manual_seed(3)
    n = 80
    truth = torch.randn(n, 3)
    road = torch.cdist(truth, truth)
    held_out = torch.rand(n, n).triu(1) > 0.8
    held_out = held_out | held_out.T
    known = ~held_out & ~torch.eye(n, dtype=torch.bool)

    model = Layout(n)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=600, eta_min=1e-3)
    for step in range(1, 601):
        model.train()
        towns = torch.randperm(n)[:48]
        loss = stress(model(towns), road[towns][:, towns], known[towns][:, towns])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 100 == 0:
            model.eval()
            with torch.no_grad():
                val = stress(model(torch.arange(n)), road, held_out).item()
            print(f"step {step}: stress {loss.item():.4f} held-out {val:.4f}")


if __name__ == "__main__":
    main()
