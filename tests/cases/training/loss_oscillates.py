"""A camera adds the same pattern to every image, and one offset a pixel takes it out again. Momentum that forgets nothing swings
past the answer and back, again and again."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit, Training
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Training:
    return _training(kit, momentum=0.9999)


def healthy(kit: Kit) -> Training:
    return _training(kit, momentum=0.9)


def _training(kit: Kit, momentum: float) -> Training:
    x, _ = digits()
    x = x[:, x.std(0) > 0.1]
    pattern = np.random.default_rng(0).normal(size=x.shape[1]).astype(x.dtype)
    model = kit.sequential(kit.layer("offset", x.shape[1]))
    optimiser = kit.optimiser(model, "sgd", lr=0.1, momentum=momentum)
    return Training(Subject(model, kit.loader(x + pattern, x), kit.loss("mse"), optimiser), steps=600)
