"""Digits whose brightness is varied at random in training, and in validation too."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Varied:
    """Batches of a loader, each a little brighter or darker than it was."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self.rng = np.random.default_rng(1)

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        for x, y in self.loader:
            yield x * float(self.rng.uniform(0.8, 1.2)), y


def sick(kit: Kit) -> Subject:
    return training(kit, varied=True)


def healthy(kit: Kit) -> Subject:
    return training(kit, varied=False)


def training(kit: Kit, varied: bool) -> Subject:
    x, y = digits()
    order = np.random.default_rng(0).permutation(len(x))
    train, held_out = order[360:], order[:360]
    model = kit.mlp(64, 64, 10)
    validation = kit.loader(x[held_out], y[held_out], shuffle=False)
    return Subject(
        model,
        Varied(kit.loader(x[train], y[train])),
        kit.loss("cross-entropy"),
        kit.optimiser(model, "adam", lr=1e-3),
        Varied(validation) if varied else validation,
    )
