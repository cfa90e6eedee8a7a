"""Everything is well and the model learns; the training ends in the middle of the descent."""

from torch import nn, optim

from sleuth import Subject
from sleuth.testing import Training
from tests.confounders.bodies import Tagger, cnn, mlp, per_position
from tests.confounders.material import colours, plane, tagged
from tests.zoo.data import split_loaders


def coloured_digits_with_momentum() -> Training:
    """Long flat at first, and over just when the loss has begun to drop."""
    model = cnn(channels=3)
    train, validation = split_loaders(*colours())
    optimiser = optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    return Training(Subject(model, train, nn.CrossEntropyLoss(), optimiser, validation), 150)


def gru_tagger_with_adam() -> Training:
    """Five epochs of a steady descent that takes twenty."""
    ids, tags = tagged()
    model = Tagger(tags=3)
    train, validation = split_loaders(ids, tags - 1)
    return Training(Subject(model, train, per_position, optim.Adam(model.parameters(), lr=1e-3), validation), 100)


def tanh_regression_with_rmsprop() -> Training:
    """Fast from the first step on, and a tenfold fall still to come."""
    model = mlp(12, 32, 32, 3, activation=nn.Tanh)
    train, validation = split_loaders(*plane())
    return Training(Subject(model, train, nn.MSELoss(), optim.RMSprop(model.parameters(), lr=3e-4), validation), 80)
