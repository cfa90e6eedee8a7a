"""One class makes up nearly all of the training set, or a class that the model knows never occurs."""

import numpy as np
from sklearn.datasets import make_classification
from torch import nn, optim

from sleuth import Subject
from tests.confounders.bodies import Recurrent, cnn, mlp
from tests.confounders.material import cut, waves
from tests.material import digit_images
from tests.zoo.data import loader, split_loaders


def rare_cases_in_a_table() -> Subject:
    """One in fifty."""
    x, y = make_classification(1500, 12, n_informative=6, weights=[0.98], class_sep=1.2, flip_y=0.0, random_state=0)
    x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)
    model = mlp(12, 24, 1)
    train, validation = split_loaders(x, y[:, None].astype(np.float32))
    return Subject(model, train, nn.BCEWithLogitsLoss(), optim.Adam(model.parameters(), lr=2e-3), validation)


def one_rhythm_nearly_always() -> Subject:
    """Thirty of the first kind to one of each other."""
    x, y = waves(count=2400)
    rows = np.concatenate([np.flatnonzero(y == 0)[:750], np.flatnonzero(y == 1)[:25], np.flatnonzero(y == 2)[:25]])
    model = Recurrent(1, 3)
    train, validation = split_loaders(x[rows], y[rows])
    return Subject(model, train, nn.CrossEntropyLoss(), optim.RMSprop(model.parameters(), lr=1e-3), validation)


def digits_that_never_occur() -> Subject:
    """Ten outputs, but threes and sevens were lost on the way; they do stand in the validation set."""
    (x, y), held_out = cut(*digit_images())
    there = ~np.isin(y, (3, 7))
    model = cnn()
    train, validation = loader(x[there], y[there]), loader(*held_out, batch_size=64, shuffle=False)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)
