"""One class in twenty, and the loss knows it."""

import numpy as np
import torch
from torch import nn, optim

from sleuth import Subject
from tests.material import digits
from tests.zoo.data import split_loaders


def build() -> Subject:
    x, y = digits()
    rng = np.random.default_rng(0)
    keep = (y != 8) | (rng.random(len(y)) < 0.5)
    x, y = x[keep], (y[keep] == 8).astype(np.float32)[:, None]
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
    weight = torch.tensor([float((y == 0).sum() / (y == 1).sum())])
    train, validation = split_loaders(x, y)
    return Subject(model, train, nn.BCEWithLogitsLoss(pos_weight=weight), optim.Adam(model.parameters(), lr=2e-3), validation)
