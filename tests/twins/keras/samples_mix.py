"""An LSTM that reads digits row by row: the time is put in front, as elsewhere, and it takes the samples for the rows."""

from typing import Any

import keras
from keras import layers, ops

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Reader(keras.Model):
    def __init__(self, time_first: bool) -> None:
        super().__init__()
        self.order = (1, 0, 2) if time_first else (0, 1, 2)
        self.lstm, self.head = layers.LSTM(48, return_sequences=True), layers.Dense(10)

    def call(self, rows: Any) -> Any:
        states = ops.transpose(self.lstm(ops.transpose(rows, self.order)), self.order)
        return self.head(states[:, -1])


def sick(kit: Kit) -> Subject:
    return _training(kit, time_first=True)


def healthy(kit: Kit) -> Subject:
    return _training(kit, time_first=False)


def _training(kit: Kit, time_first: bool) -> Subject:
    x, y = digits()
    model = Reader(time_first)
    model(x[:2].reshape(-1, 8, 8))
    return Subject(model, kit.loader(x.reshape(-1, 8, 8), y), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=5e-3))
