"""NaN or infinity stands in the inputs before any model has seen them."""

import numpy as np
from torch import nn, optim
from torch.utils.data import DataLoader

from sleuth import Subject
from tests.confounders.bodies import Recurrent, cnn, mlp
from tests.confounders.material import cut, waves
from tests.material import cancer, digits
from tests.zoo.data import split_loaders


def table_with_missing_values() -> Subject:
    """Four columns were not measured for every patient."""
    x, y = cancer()
    x = x.copy()
    rng = np.random.default_rng(0)
    for column in (3, 11, 12, 27):
        x[rng.random(len(x)) < 0.08, column] = np.nan
    model = mlp(30, 24, 1)
    train, validation = split_loaders(x, y[:, None].astype(np.float32))
    return Subject(model, train, nn.BCEWithLogitsLoss(), optim.SGD(model.parameters(), lr=0.1, momentum=0.9), validation)


def lstm_on_log_counts() -> Subject:
    """Counts on a log scale; quiet moments count zero."""
    signal, y = waves()
    counts = np.random.default_rng(0).poisson(6 * np.exp(signal))
    with np.errstate(divide="ignore"):
        x = np.log(counts).astype(np.float32) - 1.6
    model = Recurrent(1, 3)
    train, validation = split_loaders(x, y)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=3e-3), validation)


def images_divided_by_no_spread() -> Subject:
    """Each pixel by its own spread; the corners of the pictures have none."""
    x, y = digits()
    with np.errstate(invalid="ignore"):
        x = (x - x.mean(0)) / x.std(0)
    train, held_out = (
        [{"image": image, "label": label} for image, label in zip(images.reshape(-1, 1, 8, 8), labels, strict=True)]
        for images, labels in cut(x, y)
    )
    model = cnn()
    loaders = DataLoader(train, batch_size=32, shuffle=True), DataLoader(held_out, batch_size=64)
    return Subject(model, loaders[0], nn.CrossEntropyLoss(), optim.AdamW(model.parameters(), lr=2e-3), loaders[1])
