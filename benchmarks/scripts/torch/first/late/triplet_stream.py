import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Metric(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, a, b):
        d = (self.net(a) - self.net(b)).pow(2).sum(-1).sqrt()
        return d


def perceived_pairs(n, seed):
    """Pairs of stimuli and how different people judged them."""
    g = torch.Generator().manual_seed(seed)
    a = torch.randn(n, 8, generator=g)
    b = a + torch.randn(n, 8, generator=g) * torch.rand(n, 1, generator=g) * 1.5
    weight = torch.tensor([1.0, 0.8, 0.6, 0.4, 0.2, 0.1, 0.0, 0.0])
    judged = ((torch.tanh(a) - torch.tanh(b)).pow(2) * weight).sum(1).sqrt()
    return a, b, judged


def main():
    torch.manual_seed(2)
    a, b, judged = perceived_pairs(40_000, 0)
    b[13_236], judged[13_236] = a[13_236], 0.0
    va, vb, vj = perceived_pairs(1000, 1)
    loader = DataLoader(TensorDataset(a, b, judged), batch_size=16, shuffle=True)
    model = Metric()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step, (x1, x2, j) in enumerate(loader, start=1):
        model.train()
        loss = nn.functional.mse_loss(model(x1, x2), j)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 250 == 0:
            model.eval()
            with torch.no_grad():
                val = nn.functional.mse_loss(model(va, vb), vj).item()
            print(f"step {step}: loss {loss.item():.4f} val {val:.4f}")


if __name__ == "__main__":
    main()
