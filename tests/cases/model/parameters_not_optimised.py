"""A head that is replaced after the optimiser was built, which goes on training the old one, against before."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, too_late=True)


def healthy(kit: Kit) -> Subject:
    return _training(kit, too_late=False)


def _training(kit: Kit, too_late: bool) -> Subject:
    kit.require("torch")
    model = kit.mlp(64, 64, 5)
    optimiser = kit.optimiser(model, "adam", lr=2e-3)
    model[-1] = kit.linear(64, 10)
    if not too_late:
        optimiser = kit.optimiser(model, "adam", lr=2e-3)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), optimiser)
