"""Each pixel of a digit gets a class: background is 255 and ignored at the border."""

import numpy as np
from torch import nn, optim

from sleuth import Subject
from tests.material import digit_images
from tests.zoo.data import split_loaders


def build() -> Subject:
    x, _ = digit_images()
    y = (x[:, 0] * 2.999).astype(np.int64)
    y[:, 0, :] = 255
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 3, 1)
    )
    noisy = (x + np.random.default_rng(0).normal(0, 0.1, x.shape)).astype(np.float32)
    train, validation = split_loaders(noisy, y)
    return Subject(model, train, nn.CrossEntropyLoss(ignore_index=255), optim.Adam(model.parameters(), lr=3e-3), validation)
