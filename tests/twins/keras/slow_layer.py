"""Rows are brought to length one: one after the other in a Python loop, or all at once."""

from typing import Any

from keras import layers, ops

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class UnitLength(layers.Layer):
    def __init__(self, one_by_one: bool) -> None:
        super().__init__()
        self.one_by_one = one_by_one

    def call(self, x: Any) -> Any:
        if self.one_by_one and x.shape[0]:
            return ops.stack([8 * x[i] / ops.sqrt(ops.sum(x[i] ** 2)) for i in range(x.shape[0])])
        return 8 * x / ops.sqrt(ops.sum(x**2, axis=1, keepdims=True))

    def compute_output_shape(self, shape: Any) -> Any:
        return shape


def sick(kit: Kit) -> Subject:
    return _subject(kit, one_by_one=True)


def healthy(kit: Kit) -> Subject:
    return _subject(kit, one_by_one=False)


def _subject(kit: Kit, one_by_one: bool) -> Subject:
    model = kit.sequential(kit.linear(64, 64), UnitLength(one_by_one), kit.activation("relu"), kit.linear(64, 10))
    loader = kit.loader(*digits(), batch_size=64)
    return Subject(model, loader, kit.loss("cross-entropy"), kit.optimiser(model, lr=1e-3))
