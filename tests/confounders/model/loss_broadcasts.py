"""A column of predictions meets a flat row of targets, and every prediction is compared with every target."""

import torch
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.bodies import ResidualNet
from tests.confounders.material import windows
from tests.material import diabetes, digit_images
from tests.zoo.data import split_loaders


class Forecaster(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(1, 32, batch_first=True)
        self.fc = nn.Linear(32, 1)

    def forward(self, x: Tensor) -> Tensor:
        out, _ = self.rnn(x)
        return self.fc(out[:, -1]).squeeze(-1)


def squared_error(prediction: Tensor, target: Tensor) -> Tensor:
    """Hand-written, so not even torch's warning is heard."""
    return torch.mean((prediction - target) ** 2)


def mlp_with_flat_targets() -> Subject:
    model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1))
    x, y = diabetes()
    train, validation = split_loaders(x, y[:, 0])
    return Subject(model, train, nn.MSELoss(), optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)


def lstm_that_squeezes() -> Subject:
    model = Forecaster()
    train, validation = split_loaders(*windows())
    return Subject(model, train, nn.functional.smooth_l1_loss, optim.Adam(model.parameters(), lr=3e-3), validation)


def residual_net_with_own_loss() -> Subject:
    x, _ = digit_images()
    slant = (x * range(8)).sum((1, 2, 3)) / x.sum((1, 2, 3))
    y = ((slant - slant.mean()) / slant.std()).astype("float32")
    model = ResidualNet(classes=1)
    train, validation = split_loaders(x, y)
    return Subject(model, train, squared_error, optim.AdamW(model.parameters(), lr=2e-3), validation)
