"""Some labels name a class that the model has no output for."""

import numpy as np
from torch import nn, optim

from sleuth import Subject
from tests.confounders.bodies import Tagger, mlp, per_position, segmenter
from tests.confounders.material import masks, tagged
from tests.material import digits
from tests.zoo.data import split_loaders


def labels_counted_from_one() -> Subject:
    x, y = digits()
    model = mlp(64, 48, 10)
    train, validation = split_loaders(x, y + 1)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.1, momentum=0.9), validation)


def segmentation_with_void_pixels() -> Subject:
    """The rim is marked 255 for "do not care", but the loss was not told."""
    x, mask = masks()
    y = mask[:, 0].astype(np.int64)
    y[:, :, 0] = y[:, :, -1] = 255
    model = segmenter(2)
    train, validation = split_loaders(x, y)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=3e-3), validation)


def tags_below_zero() -> Subject:
    """Tokens without a tag carry -1; torch leaves out -100."""
    x, y = tagged()
    y = np.where(np.random.default_rng(0).random(y.shape) < 0.1, -1, y - 1)
    model = Tagger(tags=3)
    train, validation = split_loaders(x, y)
    return Subject(model, train, per_position, optim.AdamW(model.parameters(), lr=3e-3), validation)
