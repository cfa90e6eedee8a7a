"""Even one batch, seen again and again, cannot be learned by heart: what tells its samples apart does not get through."""

import numpy as np
import torch
from sklearn.datasets import make_circles
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.bodies import mlp
from tests.confounders.material import waves
from tests.material import digit_images
from tests.zoo.data import split_loaders


class NoisyReader(nn.Module):
    """Noise that was meant to regularise, ten times stronger than the signal it is added to, in every mode."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(1, 32, batch_first=True)
        self.head = nn.Linear(32, 3)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.lstm(x + 10.0 * torch.randn_like(x))
        return self.head(states[:, -1])


class Brightness(nn.Module):
    """Pools the picture before it looks at it: all that is left is how much ink there was."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.body = mlp(1, 32, 32, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.body(self.pool(x).flatten(1))


def lstm_drowned_in_noise() -> Subject:
    model = NoisyReader()
    train, validation = split_loaders(*waves())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=3e-3), validation)


def images_pooled_too_soon() -> Subject:
    model = Brightness()
    train, validation = split_loaders(*digit_images())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.AdamW(model.parameters(), lr=2e-3), validation)


def a_line_through_circles() -> Subject:
    """Two rings around one centre, and a model that can only draw a straight line."""
    x, y = make_circles(1000, noise=0.05, factor=0.4, random_state=0)
    model = nn.Linear(2, 1)
    x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)
    train, validation = split_loaders(x, y[:, None].astype(np.float32), batch_size=64)
    return Subject(model, train, nn.BCEWithLogitsLoss(), optim.SGD(model.parameters(), lr=0.1, momentum=0.9), validation)
