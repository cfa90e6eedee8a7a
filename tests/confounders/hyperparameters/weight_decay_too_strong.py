"""Decay pulls the weights to zero harder than the loss can pull them anywhere else."""

from torch import nn, optim

from sleuth import Subject
from tests.confounders.bodies import Attentive, Tagger, cnn, per_position
from tests.confounders.material import tagged, waves
from tests.material import digit_images
from tests.zoo.data import split_loaders


def cnn_with_sgd() -> Subject:
    model = cnn()
    train, validation = split_loaders(*digit_images())
    optimiser = optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=0.5)
    return Subject(model, train, nn.CrossEntropyLoss(), optimiser, validation)


def tagger_with_adam() -> Subject:
    """For Adam the decay is part of the gradient, and here the greater part."""
    model = Tagger()
    train, validation = split_loaders(*tagged())
    optimiser = optim.Adam(model.parameters(), lr=3e-3, weight_decay=1.0)
    return Subject(model, train, per_position, optimiser, validation)


def transformer_with_adamw() -> Subject:
    """Each step takes a tenth off every weight."""
    model = Attentive(features=4, length=6, outputs=3)
    x, y = waves()
    train, validation = split_loaders(x.reshape(-1, 6, 4), y)
    optimiser = optim.AdamW(model.parameters(), lr=1e-3, weight_decay=100.0)
    return Subject(model, train, nn.CrossEntropyLoss(), optimiser, validation)
