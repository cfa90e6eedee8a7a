"""A softmax over a single score: whatever the score, the answer is 1."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.bodies import segmenter
from tests.confounders.material import masks, waves
from tests.material import cancer
from tests.zoo.data import split_loaders


class SlowOrFast(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(1, 24, batch_first=True)
        self.linear = nn.Linear(24, 1)

    def forward(self, x: Tensor) -> Tensor:
        out, _ = self.lstm(x)
        return F.softmax(self.linear(out[:, -1]), dim=-1)


class Strokes(nn.Module):
    """One channel of probability for the stroke, normalised over the channels."""

    def __init__(self) -> None:
        super().__init__()
        self.net = segmenter(1)

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x).softmax(dim=1)


def dice_loss(prediction: Tensor, mask: Tensor) -> Tensor:
    overlap = torch.sum(prediction * mask)
    return 1 - 2 * overlap / (prediction.sum() + mask.sum())


def mlp_with_one_unit() -> Subject:
    model = nn.Sequential(nn.Linear(30, 24), nn.ReLU(), nn.Linear(24, 1), nn.Softmax(dim=1))
    x, y = cancer()
    train, validation = split_loaders(x, y[:, None].astype("float32"))
    return Subject(model, train, nn.BCELoss(), optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)


def lstm_with_one_unit() -> Subject:
    model = SlowOrFast()
    x, y = waves()
    train, validation = split_loaders(x, (y == 0).astype("float32")[:, None])
    return Subject(model, train, F.binary_cross_entropy, optim.Adam(model.parameters(), lr=3e-3), validation)


def segmentation_with_one_channel() -> Subject:
    model = Strokes()
    train, validation = split_loaders(*masks())
    return Subject(model, train, dice_loss, optim.RMSprop(model.parameters(), lr=1e-3), validation)
