"""NaN or infinity stands among the targets; the inputs are clean."""

import numpy as np
from torch import nn, optim

from sleuth import Subject
from tests.confounders.bodies import Recurrent, ResidualNet, mlp
from tests.confounders.material import facts, friedman, windows
from tests.zoo.data import split_loaders


def regression_with_missing_answers() -> Subject:
    x, y = friedman()
    y = y.copy()
    y[np.random.default_rng(0).random(len(y)) < 0.05] = np.nan
    model = mlp(10, 48, 1)
    train, validation = split_loaders(x, y)
    return Subject(model, train, nn.MSELoss(), optim.Adam(model.parameters(), lr=3e-3), validation)


def gru_on_the_log_of_sales() -> Subject:
    """Some days nothing is sold, and the log of nothing is minus infinity."""
    x, following = windows()
    sales = np.random.default_rng(0).poisson(4 * np.exp(0.8 * following))
    with np.errstate(divide="ignore"):
        y = (np.log(sales) - 1.3).astype(np.float32)
    model = Recurrent(1, 1, nn.GRU)
    train, validation = split_loaders(x, y)
    return Subject(model, train, nn.SmoothL1Loss(), optim.RMSprop(model.parameters(), lr=1e-3), validation)


def labels_that_nobody_gave() -> Subject:
    """Facts left open by the annotators are NaN."""
    x, y = facts()
    y = np.where(np.random.default_rng(0).random(y.shape) < 0.1, np.nan, y).astype(np.float32)
    model = ResidualNet(classes=4)
    train, validation = split_loaders(x.reshape(-1, 1, 8, 8), y)
    return Subject(model, train, nn.BCEWithLogitsLoss(), optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)
