"""The digits as NumPy made them, with a model that was widened to fit; or both in single precision."""

import mlx.core as mx
import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _subject(kit, wide=True)


def healthy(kit: Kit) -> Subject:
    return _subject(kit, wide=False)


def _subject(kit: Kit, wide: bool) -> Subject:
    x, y = digits()
    model = kit.mlp(64, 32, 10)
    if wide:
        model.set_dtype(mx.float64)
    loader = kit.loader(x.astype(np.float64) if wide else x, y)
    return Subject(model, loader, kit.loss("cross-entropy"), kit.optimiser(model, lr=1e-3))
