import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


def endless(loader):
    while True:
        yield from loader


def main(total_steps=600, every=100):
    torch.manual_seed(10)
    d = load_digits()
    order = torch.randperm(len(d.target))
    x = torch.tensor(d.images, dtype=torch.float32).unsqueeze(1)[order] / 8 - 1
    y = torch.tensor(d.target)[order]
    loader = DataLoader(TensorDataset(x[:1400], y[:1400]), batch_size=40, shuffle=True, drop_last=True)
    model = nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1, bias=False),
        nn.BatchNorm2d(12),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(192, 10),
    )
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    running = 0.0
    for step, (xb, yb) in enumerate(endless(loader), start=1):
        model.train()
        loss = F.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
        if step % every == 0:
            model.eval()
            with torch.no_grad():
                out = model(x[1400:])
                acc = (out.argmax(1) == y[1400:]).float().mean().item()
            print(f"step {step}: train {running / every:.4f} val acc {acc:.4f}")
            running = 0.0
        if step == total_steps:
            break


if __name__ == "__main__":
    main()
