"""From the fourth epoch on images and labels come from two caches that are shuffled apart: what was learned is unlearned."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit, Training
from tests.material import digits

SOURCE = "watch"
EPOCHS_FROM_DISK = 3


def sick(kit: Kit) -> Training:
    return _training(kit, apart=True)


def healthy(kit: Kit) -> Training:
    return _training(kit, apart=False)


class Cached:
    """Reads its images from disk at first and from a cache later."""

    def __init__(self, first: Any, later: Any) -> None:
        self._first, self._later = first, later
        self._epoch = 0

    def __iter__(self) -> Iterator[Any]:
        self._epoch += 1
        return iter(self._first if self._epoch <= EPOCHS_FROM_DISK else self._later)

    def __len__(self) -> int:
        return len(self._first)


def _training(kit: Kit, apart: bool) -> Training:
    x, y = digits()
    model = kit.mlp(64, 32, 10)
    order = np.random.default_rng(0).permutation(len(y))
    later = kit.loader(x[order], y if apart else y[order])
    subject = Subject(model, Cached(kit.loader(x, y), later), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))
    return Training(subject, steps=600)
