"""A model in float16 under Adam, whose squares of gradients vanish there; and in float32."""

import mlx.core as mx
import numpy as np

from sleuth import Subject
from sleuth.testing import Kit, Training
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Training:
    return _training(kit, narrow=True)


def healthy(kit: Kit) -> Training:
    return _training(kit, narrow=False)


def _training(kit: Kit, narrow: bool) -> Training:
    x, y = digits()
    model = kit.mlp(64, 64, 10, activation="tanh")
    if narrow:
        model.set_dtype(mx.float16)
    loader = kit.loader(x.astype(np.float16) if narrow else x, y)
    subject = Subject(model, loader, kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))
    return Training(subject, steps=400, options={"every": 10})
