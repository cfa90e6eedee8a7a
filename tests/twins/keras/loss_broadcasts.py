"""Progression of diabetes with a loss in compute_loss, where nobody brings both sides into one shape: (N, 1) against (N,)."""

from typing import Any

import keras
from keras import layers, ops

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import diabetes


class Regression(keras.Sequential):
    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        return ops.mean(ops.square(y_pred - y))


def sick(kit: Kit) -> Subject:
    return _training(flat=True)


def healthy(kit: Kit) -> Subject:
    return _training(flat=False)


def _training(flat: bool) -> Subject:
    x, y = diabetes()
    model = Regression([keras.Input((10,)), layers.Dense(32, activation="relu"), layers.Dense(1)])
    model.compile(optimizer=keras.optimizers.Adam(1e-2))
    return Subject(model, (x, y[:, 0] if flat else y))
