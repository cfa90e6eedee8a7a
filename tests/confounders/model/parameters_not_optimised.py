"""The optimiser holds other tensors than the model computes with, or only some of them."""

import copy

from torch import nn, optim

from sleuth import Subject
from tests.confounders.bodies import LetterModel, Recurrent, cnn, per_position
from tests.confounders.material import letters, windows
from tests.material import digit_images
from tests.zoo.data import split_loaders


def lstm_with_only_its_head_optimised() -> Subject:
    model = Recurrent(1, 1)
    train, validation = split_loaders(*windows())
    return Subject(model, train, nn.MSELoss(), optim.Adam(model.head.parameters(), lr=3e-3), validation)


def cnn_whose_head_was_replaced_later() -> Subject:
    """Built for seven classes; the head for ten came after the optimiser, which still holds the old one."""
    model = cnn(classes=7)
    optimiser = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    model[-1] = nn.Linear(128, 10)
    train, validation = split_loaders(*digit_images())
    return Subject(model, train, nn.CrossEntropyLoss(), optimiser, validation)


def language_model_with_a_copy_optimised() -> Subject:
    """The optimiser trains yesterday's copy."""
    model = LetterModel()
    best_so_far = copy.deepcopy(model)
    optimiser = optim.AdamW(best_so_far.parameters(), lr=2e-3)
    train, validation = split_loaders(*letters())
    return Subject(model, train, per_position, optimiser, validation)
