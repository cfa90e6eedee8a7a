"""Some of the features have one and the same value in every sample."""

import numpy as np
from torch import nn, optim

from sleuth import Subject
from tests.confounders.bodies import Recurrent, ResidualNet, mlp
from tests.confounders.material import colours, waves
from tests.material import wine
from tests.zoo.data import split_loaders


def table_with_columns_that_never_change() -> Subject:
    """Site, device and version of the one laboratory all wines came from."""
    x, y = wine()
    fixed = np.tile(np.array([1.0, 0.0, 0.5, -1.0, 2.0, 1.0], dtype=np.float32), (len(x), 1))
    model = mlp(19, 24, 3)
    train, validation = split_loaders(np.concatenate([x, fixed], axis=1), y)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)


def sensors_that_are_stuck() -> Subject:
    """Two of four channels stopped moving before the recording began."""
    x, y = waves()
    noisy = x + np.random.default_rng(0).normal(0, 0.3, x.shape)
    stuck = np.full_like(x, 0.7), np.full_like(x, -1.2)
    model = Recurrent(4, 3, nn.GRU)
    train, validation = split_loaders(np.concatenate([x, noisy, *stuck], axis=2).astype(np.float32), y)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=3e-3), validation)


def images_with_a_dead_channel() -> Subject:
    """The camera's blue channel is the same grey all over, in every picture."""
    x, y = colours()
    x = x.copy()
    x[:, 2] = 0.5
    model = ResidualNet(channels=3)
    train, validation = split_loaders(x, y)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.AdamW(model.parameters(), lr=2e-3), validation)
