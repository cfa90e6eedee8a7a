"""A setting of the optimiser has a value with which it cannot work."""

from torch import nn, optim

from sleuth import Subject
from tests.confounders.bodies import LetterModel, Recurrent, mlp, per_position
from tests.confounders.material import letters, windows
from tests.material import cancer
from tests.zoo.data import split_loaders


def rate_from_whole_numbers() -> Subject:
    """One hundredth, by integer division."""
    model = mlp(30, 24, 1)
    x, y = cancer()
    train, validation = split_loaders(x, y[:, None].astype("float32"))
    rate = 1 // 100
    return Subject(model, train, nn.BCEWithLogitsLoss(), optim.Adagrad(model.parameters(), lr=rate), validation)


def epsilon_without_its_minus() -> Subject:
    """1e8 for 1e-8."""
    model = LetterModel()
    train, validation = split_loaders(*letters())
    return Subject(model, train, per_position, optim.AdamW(model.parameters(), lr=2e-3, eps=1e8), validation)


def momentum_above_one() -> Subject:
    """A speed that grows by itself."""
    model = Recurrent(1, 1)
    train, validation = split_loaders(*windows())
    return Subject(model, train, nn.MSELoss(), optim.SGD(model.parameters(), lr=0.02, momentum=1.09), validation)
