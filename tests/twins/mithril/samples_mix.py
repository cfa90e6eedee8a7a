"""Digits read row by row: the rows are averaged after a reshape that takes the samples for rows, or after one that does not."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits

ROWS, WIDTH = 8, 48


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
        kit.layer("reshape", *((ROWS, -1, WIDTH) if rows_first else (-1, ROWS, WIDTH))),
        kit.layer("mean", 0 if rows_first else 1),
        kit.linear(WIDTH, 32),
        kit.activation("relu"),
        kit.linear(32, 10),
    )
    return Subject(model, kit.loader(rows, y), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=5e-3))
