"""The model learns what it can, which is little, on both sets alike."""

import numpy as np
import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import mlp
from tests.confounders.material import windows
from tests.material import digit_images, digits
from tests.zoo.data import split_loaders


def digits_seen_through_one_unit() -> Loop:
    model = mlp(64, 32, 1, 10, activation=nn.Tanh)
    optimiser = optim.Adam(model.parameters(), lr=1e-2)
    schedule = optim.lr_scheduler.ExponentialLR(optimiser, 0.9)
    train, validation = split_loaders(*digits(), batch_size=64)

    def run(w: object) -> None:
        for _ in range(40):
            model.train()
            for x, y in train:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(x), y).backward()
                optimiser.step()
            model.eval()
            with torch.no_grad():
                losses = [nn.functional.cross_entropy(model(x), y).item() for x, y in validation]
            w.log(val_loss=sum(losses) / len(losses))
            schedule.step()

    return Loop(model, [optimiser], run)


class LastValue(nn.Module):
    """Predicts a wave from the last value alone, with a straight line."""

    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(1, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.line(x[:, -1])


def waves_by_a_straight_line() -> Loop:
    model = LastValue()
    optimiser = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    train, validation = split_loaders(*windows())
    criterion = nn.MSELoss()

    def validated() -> float:
        with torch.no_grad():
            return float(np.mean([criterion(model(x), y).item() for x, y in validation]))

    def run(w: object) -> None:
        for _ in range(25):
            for x, y in train:
                optimiser.zero_grad()
                criterion(model(x), y).backward()
                optimiser.step()
            w.log(val_loss=validated())

    return Loop(model, [optimiser], run)


def images_averaged_away() -> Loop:
    """Four filters, and of their answers only the mean over the whole image."""
    model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 10))
    optimiser = optim.Adam(model.parameters(), lr=5e-2)
    schedule = optim.lr_scheduler.StepLR(optimiser, 12, 0.1)
    train, validation = split_loaders(*digit_images(), batch_size=64)

    def run(w: object) -> None:
        for _ in range(25):
            model.train()
            for x, y in train:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(x), y).backward()
                optimiser.step()
            model.eval()
            with torch.no_grad():
                scores = torch.cat([model(x) for x, _ in validation])
                truth = torch.cat([y for _, y in validation])
                right = (scores.argmax(1) == truth).float().mean().item()
                w.log(val_loss=nn.functional.cross_entropy(scores, truth).item(), val_accuracy=right)
            schedule.step()

    return Loop(model, [optimiser], run)
