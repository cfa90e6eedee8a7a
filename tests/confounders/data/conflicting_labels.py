"""The same input occurs with different labels: no model can be right about both."""

import numpy as np
from torch import nn, optim

from sleuth import Subject
from tests.confounders.bodies import Attentive, BagOfWords, cnn
from tests.confounders.material import cut, sentences, waves
from tests.material import digit_images
from tests.zoo.data import loader


def _twice(x: np.ndarray, y: np.ndarray, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Each sample once as it is and once under another class."""
    other = (y + np.random.default_rng(0).integers(1, classes, len(y))) % classes
    return np.concatenate([x, x]), np.concatenate([y, other])


def images_with_two_annotators() -> Subject:
    (x, y), held_out = cut(*digit_images())
    model = cnn()
    train, validation = loader(*_twice(x, y, 10)), loader(*held_out, batch_size=64, shuffle=False)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)


def sentences_praised_and_blamed() -> Subject:
    (x, y), held_out = cut(*sentences())
    ids, labels = _twice(x[:600], y[:600], 2)
    model = BagOfWords(outputs=1)
    train = loader(np.concatenate([ids, x[600:]]), np.concatenate([labels, y[600:]])[:, None].astype(np.float32))
    validation = loader(held_out[0], held_out[1][:, None].astype(np.float32), batch_size=64, shuffle=False)
    return Subject(model, train, nn.BCEWithLogitsLoss(), optim.AdamW(model.parameters(), lr=3e-3), validation)


def recordings_filed_twice() -> Subject:
    x, y = waves()
    (x, y), held_out = cut(x.reshape(-1, 6, 4), y)
    model = Attentive(features=4, length=6, outputs=3)
    train, validation = loader(*_twice(x, y, 3)), loader(*held_out, batch_size=64, shuffle=False)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=1e-3), validation)
