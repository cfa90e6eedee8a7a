"""Tumours measured in thirty ways; in the sick table a join failed and one column holds the same value in every row."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import cancer

COLUMN = 7


def sick(kit: Kit) -> Subject:
    return training(kit, stuck=True)


def healthy(kit: Kit) -> Subject:
    return training(kit, stuck=False)


def training(kit: Kit, stuck: bool) -> Subject:
    x, y = cancer()
    x = x.copy()
    if stuck:
        x[:, COLUMN] = x[0, COLUMN]
    model = kit.mlp(30, 32, 2)
    return Subject(model, kit.loader(x, y), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=2e-3))
