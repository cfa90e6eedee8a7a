"""An MLP on digits, the plainest of all."""

from torch import nn, optim

from sleuth import Subject
from tests.material import digits
from tests.zoo.data import split_loaders


def build() -> Subject:
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    train, validation = split_loaders(*digits())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=1e-3), validation)
