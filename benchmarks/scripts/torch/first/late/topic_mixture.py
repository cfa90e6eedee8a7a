import torch
import torch.nn.functional as F
from torch import nn


class Stream:
    """Batches of two-class points; positives become rarer as the season goes on."""

    def __init__(self, steps, batch, seed):
        self.g = torch.Generator().manual_seed(seed)
        self.steps, self.batch = steps, batch

    def __iter__(self):
        for s in range(self.steps):
            p = 0.5 - 0.34 * s / self.steps
            yield self.draw(self.batch, p)

    def draw(self, n, p):
        y = (torch.rand(n, generator=self.g) < p).long()
        x = torch.randn(n, 6, generator=self.g)
        x[:, 0] += 1.6 * y - 0.8
        x[:, 1] *= 1.0 + 0.5 * y
        return x, y


def calibration(probs, y):
    """KL between the mean prediction and the label frequencies of the batch."""
    freq = torch.bincount(y, minlength=2) / len(y)
    mean_prob = probs.mean(0)
    return (mean_prob * (torch.log(mean_prob) - torch.log(freq))).sum()


def main(steps=3000):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    val_x, val_y = Stream(1, 1, 99).draw(1000, 0.35)
    for step, (x, y) in enumerate(Stream(steps, 28, 1), start=1):
        model.train()
        logits = model(x)
        loss = F.cross_entropy(logits, y) + 0.1 * calibration(F.softmax(logits, dim=1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 200 == 0:
            model.eval()
            with torch.no_grad():
                acc = (model(val_x).argmax(1) == val_y).float().mean().item()
            print(f"step {step} loss {loss.item():.4f} val acc {acc:.3f}")


if __name__ == "__main__":
    main()
