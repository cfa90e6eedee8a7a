"""Regression on the raw scale (25 to 346), handled well: the last bias starts at the mean, outputs are scaled."""

import numpy as np
import torch
from sklearn.datasets import load_diabetes
from torch import nn, optim

from sleuth import Subject
from tests.material import diabetes
from tests.zoo.data import split_loaders


class Scaled(nn.Module):
    def __init__(self, mean: float, std: float) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
        self.register_buffer("mean", torch.tensor(mean))
        self.register_buffer("std", torch.tensor(std))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.mean + self.std * self.body(x)


def build() -> Subject:
    x, _ = diabetes()
    y = load_diabetes(return_X_y=True)[1].astype(np.float32)[:, None]
    model = Scaled(float(y.mean()), float(y.std()))
    train, validation = split_loaders(x, y)
    return Subject(model, train, nn.SmoothL1Loss(beta=30.0), optim.Adam(model.parameters(), lr=3e-3), validation)
