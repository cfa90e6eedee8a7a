"""Validation is preprocessed in another way than training."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from torch import nn, optim

from sleuth import Subject
from tests.confounders.bodies import Recurrent, cnn, mlp
from tests.confounders.material import cut, windows
from tests.material import digit_images
from tests.zoo.data import loader


def images_scaled_for_training_only() -> Subject:
    """Validation pictures keep their sixteen grey levels."""
    (x, y), (held_x, held_y) = cut(*digit_images())
    model = cnn()
    train, validation = loader(x, y), loader(held_x * 16, held_y, batch_size=64, shuffle=False)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)


def table_standardised_for_training_only() -> Subject:
    raw, labels = load_breast_cancer(return_X_y=True)
    (x, y), (held_x, held_y) = cut(raw.astype(np.float32), labels[:, None].astype(np.float32))
    model = mlp(30, 24, 1)
    train, validation = loader((x - x.mean(0)) / x.std(0), y), loader(held_x, held_y, shuffle=False)
    return Subject(model, train, nn.BCEWithLogitsLoss(), optim.Adam(model.parameters(), lr=2e-3), validation)


def series_normalised_once_more() -> Subject:
    """Each held-out window loses its own mean and is shrunk tenfold; the training windows do not."""
    (x, y), (held_x, held_y) = cut(*windows())
    shrunk = (held_x - held_x.mean(1, keepdims=True)) / 10 - 0.5
    model = Recurrent(1, 1, nn.GRU)
    train, validation = loader(x, y), loader(shrunk, held_y, batch_size=64, shuffle=False)
    return Subject(model, train, nn.MSELoss(), optim.RMSprop(model.parameters(), lr=1e-3), validation)
