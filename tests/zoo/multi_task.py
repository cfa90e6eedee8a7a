"""Two heads on one trunk: the digit, and its mean brightness; outputs and targets are dictionaries."""

import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader

from sleuth import Subject
from tests.material import digits


class TwoHeads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
        self.digit = nn.Linear(64, 10)
        self.brightness = nn.Linear(64, 1)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        hidden = self.trunk(x)
        return {"digit": self.digit(hidden), "brightness": self.brightness(hidden)}


def loss(outputs: dict[str, torch.Tensor], targets: dict[str, torch.Tensor]) -> torch.Tensor:
    digit = nn.functional.cross_entropy(outputs["digit"], targets["digit"])
    return digit + nn.functional.mse_loss(outputs["brightness"], targets["brightness"])


def build() -> Subject:
    x, y = digits()
    light = x.mean(1, keepdims=True)
    light = ((light - light.mean()) / light.std()).astype(np.float32)
    samples = [(a, {"digit": b, "brightness": c}) for a, b, c in zip(x, y, light, strict=True)]
    model = TwoHeads()
    train = DataLoader(samples, batch_size=32, shuffle=True)
    return Subject(model, train, loss, optim.Adam(model.parameters(), lr=1e-3))
