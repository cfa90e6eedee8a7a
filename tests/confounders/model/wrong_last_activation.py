"""The last activation cannot take the values that the targets have."""

import torch
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.material import windows
from tests.material import diabetes, digit_images
from tests.zoo.data import split_loaders


class BoundedForecaster(nn.Module):
    """A sigmoid at the end; the series swings between -1.5 and 1.5."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(1, 32, batch_first=True)
        self.fc = nn.Linear(32, 1)

    def forward(self, x: Tensor) -> Tensor:
        _, h = self.gru(x)
        return torch.sigmoid(self.fc(h[-1]))


class ConvAutoencoder(nn.Module):
    """ReLU after the last layer as after the others; black pixels are -1."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(16, 8, 3, padding=1), nn.ReLU()
        )
        self.decoder = nn.Sequential(nn.ConvTranspose2d(8, 16, 2, stride=2), nn.ReLU(), nn.Conv2d(16, 1, 3, padding=1), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(self.encoder(x))


def mlp_with_tanh_on_wide_targets() -> Subject:
    """A third of the standardised targets lie beyond one, where tanh never comes."""
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1), nn.Tanh())
    x, y = diabetes()
    train, validation = split_loaders(x, y)
    return Subject(model, train, nn.MSELoss(), optim.SGD(model.parameters(), lr=0.02, momentum=0.9), validation)


def gru_with_sigmoid_on_a_signed_series() -> Subject:
    model = BoundedForecaster()
    train, validation = split_loaders(*windows())
    return Subject(model, train, nn.L1Loss(), optim.Adam(model.parameters(), lr=3e-3), validation)


def autoencoder_with_relu_on_signed_pixels() -> Subject:
    model = ConvAutoencoder()
    x, _ = digit_images()
    signed = 2 * x - 1
    train, validation = split_loaders(signed, signed)
    return Subject(model, train, nn.MSELoss(), optim.AdamW(model.parameters(), lr=2e-3), validation)
