"""A head that is replaced after the optimiser was built, which goes on training the old one, against before."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class SGD:
    def __init__(self, params: list[np.ndarray], lr: float) -> None:
        self.params, self.lr = params, lr

    def step(self, grads: dict[str, np.ndarray]) -> None:
        for array, gradient in zip(self.params, grads.values(), strict=True):
            if array.shape == gradient.shape:
                array -= self.lr * gradient


def sick(kit: Kit) -> Subject:
    return _training(kit, too_late=True)


def healthy(kit: Kit) -> Subject:
    return _training(kit, too_late=False)


def _training(kit: Kit, too_late: bool) -> Subject:
    model = kit.mlp(64, 64, 10)
    optimiser = SGD([array for _, array in model.parameters()], lr=0.3)
    model.layers[-1] = kit.linear(64, 10)
    if not too_late:
        optimiser = SGD([array for _, array in model.parameters()], lr=0.3)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), optimiser)
