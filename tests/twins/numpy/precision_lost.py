"""A model in float16 under Adam, whose squares of gradients vanish there; and in float32."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit, Training
from tests.material import digits

SOURCE = "watch"


def training(kit: Kit, dtype: type) -> Training:
    model = kit.mlp(64, 64, 10, activation="tanh")
    for layer in model.layers:
        for name in layer.names:
            setattr(layer, name, getattr(layer, name).astype(dtype))
    x, y = digits()
    loader = kit.loader(x.astype(dtype), y)
    subject = Subject(model, loader, kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))
    return Training(subject, steps=400, options={"every": 10})


def sick(kit: Kit) -> Training:
    return training(kit, np.float16)


def healthy(kit: Kit) -> Training:
    return training(kit, np.float32)
