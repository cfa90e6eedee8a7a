"""Forty samples, full-batch training."""

from torch import nn, optim

from sleuth import Subject
from tests.material import wine
from tests.zoo.data import loader


def build() -> Subject:
    x, y = wine()
    model = nn.Sequential(nn.Linear(13, 16), nn.Tanh(), nn.Linear(16, 3))
    train = loader(x[::4], y[::4], batch_size=64)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=1e-2))
