"""The inputs come on their raw scale: pixels to 255, prices in the ten thousands, columns whose units have nothing in common."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from torch import nn, optim

from sleuth import Subject
from tests.confounders.bodies import Recurrent, cnn, mlp
from tests.confounders.material import colours, waves
from tests.zoo.data import split_loaders


def cnn_on_raw_pixels() -> Subject:
    x, y = colours()
    model = cnn(channels=3)
    train, validation = split_loaders(np.round(x * 255).astype(np.float32), y)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)


def table_in_mixed_units() -> Subject:
    """Areas in the thousands next to errors in the thousandths."""
    x, y = load_breast_cancer(return_X_y=True)
    model = mlp(30, 24, 1)
    train, validation = split_loaders(x.astype(np.float32), y[:, None].astype(np.float32))
    return Subject(model, train, nn.BCEWithLogitsLoss(), optim.Adam(model.parameters(), lr=2e-3), validation)


def gru_on_raw_prices() -> Subject:
    """Prices around forty thousand; which of three rhythms they follow."""
    x, y = waves()
    model = Recurrent(1, 3, nn.GRU)
    train, validation = split_loaders((40_000 + 2_500 * x).astype(np.float32), y)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.RMSprop(model.parameters(), lr=1e-3), validation)
