"""Sigmoid or tanh units are pinned to their ends, where they hardly have a slope."""

import torch
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.bodies import mlp
from tests.confounders.material import TOKENS, table, tagged
from tests.material import digits
from tests.zoo.data import split_loaders


class Histogram(nn.Module):
    """Sums features over all tokens instead of averaging them: tanh gets numbers in the tens."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, 32)
        self.features = nn.Sequential(nn.Linear(32, 48), nn.Softplus())
        self.squash = nn.Tanh()
        self.head = nn.Linear(48, 1)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.squash(self.features(self.embedding(ids)).sum(dim=1)))


class Steep(nn.Module):
    """A slope of two hundred makes steps of the sigmoids."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 12, 3, padding=1)
        self.fc1 = nn.Linear(12 * 16, 48)
        self.fc2 = nn.Linear(48, 10)
        self.slope = 200.0

    def forward(self, x: Tensor) -> Tensor:
        h = nn.functional.max_pool2d(torch.relu(self.conv(x)), 2).flatten(1)
        return self.fc2(torch.sigmoid(self.slope * self.fc1(h)))


def sum_pooling_before_tanh() -> Subject:
    """How many of the tokens are large, in standard units."""
    model = Histogram()
    x, _ = tagged()
    count = (x > TOKENS // 2).sum(1, keepdims=True)
    y = ((count - count.mean()) / count.std()).astype("float32")
    train, validation = split_loaders(x, y)
    return Subject(model, train, nn.MSELoss(), optim.Adam(model.parameters(), lr=3e-3), validation)


def cnn_with_steep_sigmoids() -> Subject:
    model = Steep()
    x, y = digits()
    train, validation = split_loaders(x.reshape(-1, 1, 8, 8), y)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)


def mlp_with_biases_at_the_ends() -> Subject:
    """The biases of the tanh layer were spread over -15..15 to "cover the range"."""
    model = mlp(20, 64, 32, 4, activation=nn.Tanh)
    with torch.no_grad():
        model[0].bias.copy_(torch.linspace(-15, 15, 64))
    train, validation = split_loaders(*table())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.RMSprop(model.parameters(), lr=1e-3), validation)
