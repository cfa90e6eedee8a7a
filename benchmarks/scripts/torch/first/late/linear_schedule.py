import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset

cfg = {"epochs": 4, "batch_size": 8, "lr": 0.02, "warmup": 100, "seed": 0}


def noisy_product(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 12, generator=g)
    y = torch.sin(x[:, 0] * 2) + x[:, 1] * x[:, 2] + torch.tanh(x[:, 3] * x[:, 4]) + 0.3 * x[:, 5:].sum(1)
    return TensorDataset(x, y / 1.8)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.seq = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.seq(x).squeeze(-1)


def main(cfg):
    torch.manual_seed(cfg["seed"])
    loader = DataLoader(noisy_product(16_000, 0), cfg["batch_size"], shuffle=True)
    val_x, val_y = noisy_product(1000, 1).tensors
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg["lr"])
    total_steps = len(loader)

    def factor(step):
        if step < cfg["warmup"]:
            return (step + 1) / cfg["warmup"]
        return max(0.0, (total_steps - step) / (total_steps - cfg["warmup"]))

    scheduler = LambdaLR(optimizer, factor)
    for epoch in range(cfg["epochs"]):
        model.train()
        total = 0.0
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            val = nn.functional.mse_loss(model(val_x), val_y).item()
        print(f"epoch {epoch + 1}: train {total / len(loader):.4f} val {val:.4f}")


if __name__ == "__main__":
    main(cfg)
