"""The same batch gives quite other answers in evaluation than in training, and dropout is not the reason."""

import torch
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.bodies import mlp
from tests.confounders.material import friedman, waves
from tests.material import digit_images
from tests.zoo.data import split_loaders


class SlowNormNet(nn.Module):
    """The running statistics move by a ten-thousandth a step: evaluation keeps using the zeros and ones of the start."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16, momentum=1e-4)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(32, momentum=1e-4)
        self.fc = nn.Linear(32 * 4, 10)

    def forward(self, x: Tensor) -> Tensor:
        h = nn.functional.max_pool2d(torch.relu(self.bn1(self.conv1(x))), 2)
        h = nn.functional.max_pool2d(torch.relu(self.bn2(self.conv2(h))), 2)
        return self.fc(h.flatten(1))


class ScaledTwice(nn.Module):
    """Inputs are standardised by the data pipeline; in evaluation the model does it once more, with raw numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.body = mlp(10, 48, 1)
        self.register_buffer("mean", torch.full((10,), 5.0))
        self.register_buffer("std", torch.full((10,), 2.0))

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            x = (x - self.mean) / self.std
        return self.body(x)


class Averaged(nn.Module):
    """Evaluation uses the running average of the head's weights, which nobody calls `update` on."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(1, 32, batch_first=True)
        self.head = nn.Linear(32, 3)
        self.register_buffer("average", torch.zeros(3, 32))

    def update(self) -> None:
        self.average.lerp_(self.head.weight.detach(), 0.01)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.gru(x)
        weight = self.head.weight if self.training else self.average
        return nn.functional.linear(states[:, -1], weight, self.head.bias)


def cnn_with_frozen_statistics() -> Subject:
    model = SlowNormNet()
    train, validation = split_loaders(*digit_images())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)


def regression_scaled_twice_in_evaluation() -> Subject:
    model = ScaledTwice()
    train, validation = split_loaders(*friedman())
    return Subject(model, train, nn.MSELoss(), optim.AdamW(model.parameters(), lr=2e-3), validation)


def gru_with_an_average_never_updated() -> Subject:
    model = Averaged()
    train, validation = split_loaders(*waves())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=3e-3), validation)
