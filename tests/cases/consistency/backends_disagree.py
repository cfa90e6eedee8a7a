"""A model and the same one written by hand, whose relu lets a little through below zero."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.kits import numpy_layers as by_hand
from tests.kits.numpy_kit import NumpyKit
from tests.material import digits


class ReLU(by_hand.ReLU):
    slope = 0.01

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.on = np.where(x > 0, 1, self.slope).astype(x.dtype)
        return x * self.on


def sick(kit: Kit) -> Subject:
    return _training(kit, ReLU())


def healthy(kit: Kit) -> Subject:
    return _training(kit, by_hand.ReLU())


def _training(kit: Kit, activation: by_hand.Layer) -> Subject:
    model = kit.mlp(64, 32, 10)
    twin = by_hand.Sequential(by_hand.Linear(64, 32), activation, by_hand.Linear(32, 10))
    reference = Subject(twin, None, NumpyKit().loss("cross-entropy"), name="the model by hand")
    loader, loss = kit.loader(*digits()), kit.loss("cross-entropy")
    return Subject(model, loader, loss, kit.optimiser(model, "adam", lr=3e-3), reference=reference)
