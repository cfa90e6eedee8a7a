"""Disease progression on its own scale, 25 to 346, and standardised."""

import numpy as np
from sklearn.datasets import load_diabetes

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import diabetes


def sick(kit: Kit) -> Subject:
    return training(kit, load_diabetes().target.astype(np.float32)[:, None])


def healthy(kit: Kit) -> Subject:
    return training(kit, diabetes()[1])


def training(kit: Kit, y: np.ndarray) -> Subject:
    model = kit.mlp(10, 32, 1)
    return Subject(model, kit.loader(diabetes()[0], y), kit.loss("mse"), kit.optimiser(model, "adam", lr=5e-3))
