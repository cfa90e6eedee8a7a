"""A bias whose gradient is left as one row a sample, which has not its shape; and one that is summed over the batch."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.kits.numpy_layers import Linear
from tests.material import digits


class Unsummed(Linear):
    def backward(self, grad: np.ndarray) -> np.ndarray:
        passed = super().backward(grad)
        self.gradients["bias"] = grad
        return passed


def sick(kit: Kit) -> Subject:
    return _training(kit, Unsummed(64, 64))


def healthy(kit: Kit) -> Subject:
    return _training(kit, kit.linear(64, 64))


def _training(kit: Kit, first: Linear) -> Subject:
    model = kit.sequential(first, kit.activation("sigmoid"), kit.linear(64, 10))
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))
