"""Digits read row by row: the rows are averaged after a reshape that takes the samples for rows, or after one that does not."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.kits.numpy_layers import Layer
from tests.material import digits

ROWS, WIDTH = 8, 48


class MeanOfRows(Layer):
    """Of (samples × rows, width) the mean over each sample's rows."""

    def __init__(self, rows_first: bool) -> None:
        super().__init__()
        self.rows_first = rows_first

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.shape = x.shape
        if self.rows_first:
            return x.reshape(ROWS, -1, WIDTH).mean(0)
        return x.reshape(-1, ROWS, WIDTH).mean(1)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        spread = np.tile(grad, (ROWS, 1)) if self.rows_first else np.repeat(grad, ROWS, axis=0)
        return spread.reshape(self.shape) / ROWS


def sick(kit: Kit) -> Subject:
    return _training(kit, rows_first=True)


def healthy(kit: Kit) -> Subject:
    return _training(kit, rows_first=False)


def _training(kit: Kit, rows_first: bool) -> Subject:
    x, y = digits()
    positions = np.tile(np.eye(8, dtype=np.float32), (len(x), 1, 1))
    rows = np.concatenate([x.reshape(-1, 8, 8), positions], axis=2)  # each row with its number
    model = kit.sequential(
        kit.layer("reshape", -1, 16),
        kit.linear(16, WIDTH),
        kit.activation("relu"),
        MeanOfRows(rows_first),
        kit.linear(WIDTH, 32),
        kit.activation("relu"),
        kit.linear(32, 10),
    )
    return Subject(model, kit.loader(rows, y), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=5e-3))
