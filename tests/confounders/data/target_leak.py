"""One of the features is the answer in disguise."""

import numpy as np
from torch import nn, optim

from sleuth import Subject
from tests.confounders.bodies import cnn, mlp
from tests.confounders.material import plane, table
from tests.material import digit_images
from tests.zoo.data import split_loaders


def table_with_the_outcome_in_a_column() -> Subject:
    """A column that was filled in after the outcome was known."""
    x, y = table(classes=2)
    after = (2 * y - 1 + np.random.default_rng(0).normal(0, 0.02, len(y)))[:, None].astype(np.float32)
    model = mlp(21, 24, 1)
    train, validation = split_loaders(np.concatenate([x[:, :9], after, x[:, 9:]], axis=1), y[:, None].astype(np.float32))
    return Subject(model, train, nn.BCEWithLogitsLoss(), optim.Adam(model.parameters(), lr=2e-3), validation)


def regression_on_its_own_answer() -> Subject:
    """The target in another currency stands among the inputs."""
    x, y = plane(targets=1)
    model = mlp(13, 32, 1)
    train, validation = split_loaders(np.concatenate([x, 0.9 * y + 0.1], axis=1).astype(np.float32), y)
    return Subject(model, train, nn.MSELoss(), optim.SGD(model.parameters(), lr=0.02, momentum=0.9), validation)


def images_with_a_watermark() -> Subject:
    """The scanner wrote the file's class into the corner pixel."""
    x, y = digit_images()
    x = x.copy()
    x[:, 0, 0, 0] = y / 9
    model = cnn()
    train, validation = split_loaders(x, y)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.AdamW(model.parameters(), lr=2e-3), validation)
