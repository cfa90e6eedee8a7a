"""Grey values as ids of an embedding: as the floats that they were, and as whole numbers."""

import numpy as np
from flax import nnx

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Net(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.grey = nnx.Embed(17, 4, rngs=rngs)
        self.hidden, self.leave = nnx.Linear(256, 64, rngs=rngs), nnx.Linear(64, 10, rngs=rngs)

    def __call__(self, ids):
        return self.leave(nnx.relu(self.hidden(self.grey(ids).reshape(len(ids), -1))))


def sick(kit: Kit) -> Subject:
    return _training(kit, np.float32)


def healthy(kit: Kit) -> Subject:
    return _training(kit, np.int32)


def _training(kit: Kit, dtype: type) -> Subject:
    x, y = digits()
    model = Net(rngs=kit.rngs)
    loader = kit.loader((16 * x).astype(dtype), y)
    return Subject(model, loader, kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))
