"""The colour axis of the images is not where the first convolution takes it from."""

import numpy as np
import torch
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.bodies import ResidualNet, cnn
from tests.confounders.material import colours
from tests.material import digit_images
from tests.zoo.data import split_loaders


class Adapted(nn.Module):
    """After "expected 1 channel, got 8" the first layer was given 8: the rows of the picture."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(8, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 16, 3, padding=1)
        self.fc = nn.Linear(16 * 8, 10)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.conv2(torch.relu(self.conv1(x))))
        return self.fc(h.flatten(1))


class Permuting(nn.Module):
    """Turns images as Pillow gives them; these have been turned already."""

    def __init__(self) -> None:
        super().__init__()
        self.body = cnn(channels=3)

    def forward(self, images: Tensor) -> Tensor:
        return self.body(images.permute(0, 3, 1, 2))


def colours_at_the_end() -> Subject:
    x, y = colours()
    model = ResidualNet(channels=3)
    train, validation = split_loaders(np.ascontiguousarray(x.transpose(0, 2, 3, 1)), y)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.AdamW(model.parameters(), lr=2e-3), validation)


def rows_taken_for_channels() -> Subject:
    x, y = digit_images()
    model = Adapted()
    train, validation = split_loaders(x.reshape(-1, 8, 8, 1), y)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)


def turned_twice() -> Subject:
    model = Permuting()
    train, validation = split_loaders(*colours())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=2e-3), validation)
