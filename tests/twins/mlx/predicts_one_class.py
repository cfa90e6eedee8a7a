"""Small digits against each of the larger ones: a data set that hands out its first image under every number, or each one."""

from collections.abc import Callable

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit, Training
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Training:
    return _training(kit, lambda number: 0)


def healthy(kit: Kit) -> Training:
    return _training(kit, lambda number: number)


def _training(kit: Kit, image: Callable[[int], int]) -> Training:
    x, y = digits()
    images = np.stack([x[image(number)] for number in range(len(x))])
    model = kit.mlp(64, 32, 10)
    loader = kit.loader(images, np.maximum(y - 4, 0))
    return Training(Subject(model, loader, kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3)), 400)
