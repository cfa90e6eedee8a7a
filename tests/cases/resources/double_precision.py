"""The digits as NumPy made them, with a model that was widened to fit; or both in single precision."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _subject(kit, np.float64)


def healthy(kit: Kit) -> Subject:
    return _subject(kit, np.float32)


def _subject(kit: Kit, dtype: type) -> Subject:
    kit.require("torch")
    x, y = digits()
    model = kit.mlp(64, 32, 10)
    if dtype is np.float64:
        model = model.double()
    loader = kit.loader(x.astype(dtype), y)
    return Subject(model, loader, kit.loss("cross-entropy"), kit.optimiser(model, lr=1e-3))
