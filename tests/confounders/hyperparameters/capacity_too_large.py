"""The training set is memorised at once, and what was memorised is of no use on new samples."""

import numpy as np
from torch import nn, optim

from sleuth import Subject
from tests.confounders.bodies import Recurrent, mlp
from tests.confounders.material import cut, table, waves
from tests.material import diabetes
from tests.zoo.data import loader


def wide_mlp_on_noisy_rows() -> Subject:
    """Forty-eight rows of which a quarter is labelled wrongly, and seventy thousand weights."""
    x, y = table(classes=2)
    y = np.where(np.random.default_rng(0).random(len(y)) < 0.25, 1 - y, y)
    (x, y), held_out = cut(x, y)
    model = mlp(20, 256, 256, 2)
    train, validation = loader(x[:48], y[:48], batch_size=16), loader(*held_out, batch_size=64, shuffle=False)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=2e-3), validation)


def large_gru_on_noisy_waves() -> Subject:
    x, y = waves()
    x = (x + np.random.default_rng(0).normal(0, 2.0, x.shape)) / np.sqrt(5)
    (x, y), held_out = cut(x.astype(np.float32), y)
    model = Recurrent(1, 3, nn.GRU, width=128)
    train, validation = loader(x[:36], y[:36], batch_size=12), loader(*held_out, batch_size=64, shuffle=False)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.AdamW(model.parameters(), lr=3e-3), validation)


def deep_regression_on_forty_patients() -> Subject:
    (x, y), held_out = cut(*diabetes())
    model = mlp(10, 192, 192, 192, 1)
    train, validation = loader(x[:40], y[:40], batch_size=10), loader(*held_out, shuffle=False)
    return Subject(model, train, nn.MSELoss(), optim.RMSprop(model.parameters(), lr=5e-4), validation)
