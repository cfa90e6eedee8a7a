"""The inputs have a number type that the model's float32 weights cannot be multiplied with."""

import numpy as np
from sklearn.preprocessing import StandardScaler
from torch import nn, optim

from sleuth import Subject
from tests.confounders.bodies import Recurrent, cnn, mlp
from tests.confounders.material import plane
from tests.material import digit_images, digits
from tests.zoo.data import split_loaders


def cnn_on_bytes() -> Subject:
    """Four shades of grey, one byte a pixel."""
    x, y = digit_images()
    model = cnn()
    train, validation = split_loaders((x * 3).astype(np.uint8), y)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)


def regression_straight_from_the_scaler() -> Subject:
    """scikit-learn answers in float64."""
    x, y = plane()
    model = mlp(12, 32, 3)
    train, validation = split_loaders(StandardScaler().fit_transform(x.astype(np.float64)), y)
    return Subject(model, train, nn.MSELoss(), optim.Adam(model.parameters(), lr=3e-3), validation)


def lstm_on_whole_numbers() -> Subject:
    """Rows of grey levels from 0 to 3, kept as integers."""
    x, y = digits()
    model = Recurrent(8, 10)
    train, validation = split_loaders((x * 3).astype(np.int64).reshape(-1, 8, 8), y)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.AdamW(model.parameters(), lr=3e-3), validation)
