"""A learned offset for each place in the batch instead of one for all: the batch is learned without looking at it."""

from typing import Any

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits

BATCH = 32


def sick(kit: Kit) -> Subject:
    return _training(kit, kit.layer("offset", BATCH, 10))


def healthy(kit: Kit) -> Subject:
    return _training(kit, kit.layer("offset", 10))


def _training(kit: Kit, offset: Any) -> Subject:
    model = kit.sequential(
        kit.linear(64, 32), kit.activation("relu"), kit.linear(32, 32), kit.activation("relu"), kit.linear(32, 10), offset
    )
    x, y = digits()
    whole = len(x) // BATCH * BATCH
    loader = kit.loader(x[:whole], y[:whole], batch_size=BATCH)
    return Subject(model, loader, kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-2))
