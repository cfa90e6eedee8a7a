"""Several labels a sample: which strokes are bright."""

import numpy as np
from torch import nn, optim

from sleuth import Subject
from tests.material import digits
from tests.zoo.data import split_loaders


def build() -> Subject:
    x, y = digits()
    facts = np.stack([y % 2 == 0, y > 4, np.isin(y, (0, 6, 8, 9)), np.isin(y, (2, 3, 5, 7))], axis=1).astype(np.float32)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
    train, validation = split_loaders(x, facts)
    return Subject(model, train, nn.BCEWithLogitsLoss(), optim.Adam(model.parameters(), lr=1e-3), validation)
