"""An autoencoder: the target is the input."""

from torch import nn, optim

from sleuth import Subject
from tests.material import digits
from tests.zoo.data import split_loaders


def build() -> Subject:
    model = nn.Sequential(
        nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 16), nn.ReLU(), nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 64), nn.Sigmoid()
    )
    x, _ = digits()
    train, validation = split_loaders(x, x)
    return Subject(model, train, nn.MSELoss(), optim.Adam(model.parameters(), lr=2e-3), validation)
