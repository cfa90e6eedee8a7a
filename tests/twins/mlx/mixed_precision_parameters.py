"""A head that was brought to bfloat16 for another model and stayed so, and one that is as wide as the rest."""

import mlx.core as mx

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, mx.bfloat16)


def healthy(kit: Kit) -> Subject:
    return _training(kit, mx.float32)


def _training(kit: Kit, dtype: mx.Dtype) -> Subject:
    head = kit.linear(64, 10)
    head.set_dtype(dtype)
    model = kit.sequential(kit.linear(64, 64), kit.activation("relu"), head)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))
