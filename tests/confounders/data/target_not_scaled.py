"""The targets of a regression are on a scale that the untrained output is nowhere near."""

import numpy as np
from sklearn.datasets import load_diabetes
from torch import nn, optim

from sleuth import Subject
from tests.confounders.bodies import Recurrent, ResidualNet, mlp
from tests.confounders.material import windows
from tests.material import diabetes, digit_images
from tests.zoo.data import split_loaders


def progression_in_its_own_units() -> Subject:
    """Between 25 and 346, around 150."""
    x, _ = diabetes()
    y = load_diabetes(return_X_y=True)[1].astype(np.float32)[:, None]
    model = mlp(10, 32, 1)
    train, validation = split_loaders(x, y)
    return Subject(model, train, nn.MSELoss(), optim.Adam(model.parameters(), lr=3e-3), validation)


def prices_from_scaled_windows() -> Subject:
    """The windows are standardised, the price to forecast is not."""
    x, following = windows()
    model = Recurrent(1, 1)
    train, validation = split_loaders(x, 40_000 + 2_500 * following)
    return Subject(model, train, nn.L1Loss(), optim.RMSprop(model.parameters(), lr=1e-3), validation)


def ink_counted_in_dots() -> Subject:
    """A printer puts thousands of dots into each pixel."""
    x, _ = digit_images()
    y = 1_000 * x.sum((1, 2, 3))[:, None]
    model = ResidualNet(classes=1)
    train, validation = split_loaders(x, y.astype(np.float32))
    return Subject(model, train, nn.functional.smooth_l1_loss, optim.SGD(model.parameters(), lr=0.01), validation)
