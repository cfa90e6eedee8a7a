"""A small CNN with batch-norm on digit images."""

from torch import nn, optim

from sleuth import Subject
from tests.material import digit_images
from tests.zoo.data import split_loaders


def build() -> Subject:
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 10),
    )
    train, validation = split_loaders(*digit_images())
    optimiser = optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    return Subject(model, train, nn.CrossEntropyLoss(), optimiser, validation)
