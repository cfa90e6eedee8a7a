"""Wine by its chemistry: proline in hundreds of milligrams beside hue around one, raw and standardised."""

import numpy as np
from sklearn.datasets import load_wine

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import wine


def sick(kit: Kit) -> Subject:
    return training(kit, load_wine().data.astype(np.float32))


def healthy(kit: Kit) -> Subject:
    return training(kit, wine()[0])


def training(kit: Kit, x: np.ndarray) -> Subject:
    model = kit.mlp(13, 32, 3)
    return Subject(model, kit.loader(x, wine()[1]), kit.loss("cross-entropy"), kit.optimiser(model, "sgd", lr=0.1))
