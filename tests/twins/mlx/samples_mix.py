"""An LSTM that reads digits row by row: handed the rows first, it takes the samples for the rows."""

import mlx.core as mx
import mlx.nn as nn

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Reader(nn.Module):
    def __init__(self, rows_first: bool) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(8, 48), nn.Linear(48, 10)
        self.rows_first = rows_first

    def __call__(self, images: mx.array) -> mx.array:
        if self.rows_first:
            states, _ = self.lstm(images.swapaxes(0, 1))
            return self.head(states[-1])
        states, _ = self.lstm(images)
        return self.head(states[:, -1])


def sick(kit: Kit) -> Subject:
    return _training(kit, rows_first=True)


def healthy(kit: Kit) -> Subject:
    return _training(kit, rows_first=False)


def _training(kit: Kit, rows_first: bool) -> Subject:
    x, y = digits()
    model = Reader(rows_first)
    return Subject(model, kit.loader(x.reshape(-1, 8, 8), y), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=5e-3))
