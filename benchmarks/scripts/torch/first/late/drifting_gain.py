import torch
import torch.nn.functional as F
from torch import nn

CHANNELS, CLASSES = 10, 4
CENTRES = torch.randn(CLASSES, CHANNELS, generator=torch.Generator().manual_seed(8)) * 0.8


def measure(n, hour, generator):
    """One batch of the plant's sensors at a given hour; the amplifiers age."""
    y = torch.randint(0, CLASSES, (n,), generator=generator)
    x = CENTRES[y] + torch.randn(n, CHANNELS, generator=generator) * 0.6
    age = max(0, hour - 2200) / 120
    gain = 1.0 + age * torch.linspace(0.0, 3.0, CHANNELS)
    offset = age * torch.linspace(-4.0, 4.0, CHANNELS)
    return x * gain + offset, y


class PlantNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(CHANNELS, 32), nn.Tanh(), nn.Linear(32, CLASSES))

    def forward(self, x):
        return self.body(x)


def main():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(0)
    x_val, y_val = measure(800, 0, torch.Generator().manual_seed(5))
    x_ref, _ = measure(4000, 0, torch.Generator().manual_seed(6))
    mean, std = x_ref.mean(0), x_ref.std(0)
    x_val = (x_val - mean) / std
    model = PlantNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for hour in range(4000):
        model.train()
        x, y = measure(64, hour, g)
        x = (x - mean) / std
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if hour % 250 == 249:
            model.eval()
            with torch.no_grad():
                out = model(x_val)
                acc = (out.argmax(1) == y_val).float().mean().item()
            print(f"hour {hour + 1}: loss {loss.item():.4f} reference acc {acc:.3f}")


if __name__ == "__main__":
    main()
