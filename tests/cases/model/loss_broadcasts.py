"""Progression of diabetes: targets of shape (N,) against outputs of shape (N, 1), and targets of the outputs' shape."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import diabetes


def sick(kit: Kit) -> Subject:
    return _training(kit, flat=True)


def healthy(kit: Kit) -> Subject:
    return _training(kit, flat=False)


def _training(kit: Kit, flat: bool) -> Subject:
    x, y = diabetes()
    model = kit.mlp(10, 32, 1)
    train = kit.loader(x, y[:, 0] if flat else y)
    return Subject(model, train, kit.loss("mse"), kit.optimiser(model, "adam", lr=1e-2))
