"""Rows are brought to length one: one after the other in a Python loop, or all at once."""

import mlx.core as mx
import mlx.nn as nn

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class UnitLength(nn.Module):
    def __init__(self, one_by_one: bool) -> None:
        super().__init__()
        self.one_by_one = one_by_one

    def __call__(self, x: mx.array) -> mx.array:
        if self.one_by_one:
            return mx.stack([8 * row / mx.linalg.norm(row) for row in x])
        return 8 * x / mx.linalg.norm(x, axis=1, keepdims=True)


def sick(kit: Kit) -> Subject:
    return _subject(kit, one_by_one=True)


def healthy(kit: Kit) -> Subject:
    return _subject(kit, one_by_one=False)


def _subject(kit: Kit, one_by_one: bool) -> Subject:
    model = kit.sequential(kit.linear(64, 64), UnitLength(one_by_one), kit.activation("relu"), kit.linear(64, 10))
    loader = kit.loader(*digits(), batch_size=64)
    return Subject(model, loader, kit.loss("cross-entropy"), kit.optimiser(model, lr=1e-3))
