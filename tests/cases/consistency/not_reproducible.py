"""A loader that shuffles with a generator of its own that nobody seeds, against one that draws from the seeded global one."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, lambda n: np.random.default_rng().permutation(n))


def healthy(kit: Kit) -> Subject:
    return _training(kit, lambda n: np.random.permutation(n))


def _training(kit: Kit, draw: Any) -> Subject:
    x, y = digits()

    class Shuffled:
        def __len__(self) -> int:
            return -(-len(x) // 32)

        def __iter__(self) -> Iterator[Any]:
            order = draw(len(x))
            yield from kit.loader(x[order], y[order], shuffle=False)

    model = kit.mlp(64, 32, 10)
    return Subject(model, Shuffled(), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))
