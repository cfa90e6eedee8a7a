"""The direction is right, the steps are far too small to get anywhere."""

from torch import nn, optim

from sleuth import Subject
from tests.confounders.bodies import Factors, Recurrent, cnn
from tests.confounders.material import ratings, windows
from tests.material import digit_images
from tests.zoo.data import split_loaders


def cnn_with_sgd() -> Subject:
    model = cnn()
    train, validation = split_loaders(*digit_images())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=1e-5, momentum=0.9), validation)


def gru_with_adam() -> Subject:
    model = Recurrent(1, 1, nn.GRU)
    train, validation = split_loaders(*windows())
    return Subject(model, train, nn.MSELoss(), optim.Adam(model.parameters(), lr=1e-7), validation)


def recommender_with_adagrad() -> Subject:
    model = Factors()
    train, validation = split_loaders(*ratings())
    return Subject(model, train, nn.MSELoss(), optim.Adagrad(model.parameters(), lr=1e-5), validation)
