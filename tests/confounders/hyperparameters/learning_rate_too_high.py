"""Each step overshoots: the loss swings or climbs, and a smaller rate would cure it."""

from torch import nn, optim

from sleuth import Subject
from tests.confounders.bodies import Attentive, Recurrent, mlp
from tests.confounders.material import waves
from tests.material import diabetes, digits
from tests.zoo.data import split_loaders


def mlp_with_sgd() -> Subject:
    model = mlp(10, 32, 1)
    train, validation = split_loaders(*diabetes())
    return Subject(model, train, nn.MSELoss(), optim.SGD(model.parameters(), lr=0.3, momentum=0.9), validation)


def lstm_with_adam() -> Subject:
    model = Recurrent(1, 3)
    train, validation = split_loaders(*waves())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=0.8), validation)


def transformer_with_adamw() -> Subject:
    model = Attentive(features=8, length=8, outputs=10)
    x, y = digits()
    train, validation = split_loaders(x.reshape(-1, 8, 8), y)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.AdamW(model.parameters(), lr=0.3), validation)
