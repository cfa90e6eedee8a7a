import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_signals(n, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.linspace(0, 1, 64)
    y = torch.randint(0, 4, (n,), generator=g)
    freq = (3.0 + 2.0 * y.float()).unsqueeze(1)
    phase = 6.28 * torch.rand(n, 1, generator=g)
    x = torch.sin(6.2832 * freq * t + phase) * 1.41 + 0.5 * torch.randn(n, 64, generator=g)
    return TensorDataset(x.unsqueeze(1), y)


def accuracy(model, loader):
    model.eval()
    with torch.no_grad():
        hits = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    return hits / len(loader.dataset)


def momentum_update(model, velocity, lr, beta=0.9):
    with torch.no_grad():
        for name, p in model.named_parameters():
            velocity[name] = beta * velocity.get(name, torch.zeros_like(p)) + p.grad
            model.state_dict()[name] = p - lr * velocity[name]


def main():
    torch.manual_seed(12)
    train_loader = DataLoader(make_signals(640, 0), batch_size=64, shuffle=True)
    val_loader = DataLoader(make_signals(256, 1), batch_size=128)
    model = nn.Sequential(
        nn.Conv1d(1, 16, 7, padding=3),
        nn.ReLU(),
        nn.MaxPool1d(2),
        nn.Conv1d(16, 32, 7, padding=3),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(32, 4),
    )
    velocity = {}
    for epoch in range(12):
        model.train()
        for x, y in train_loader:
            model.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            momentum_update(model, velocity, lr=0.05)
        print(f"epoch {epoch:2d} loss {loss.item():.4f} val acc {accuracy(model, val_loader):.3f}")


if __name__ == "__main__":
    main()
