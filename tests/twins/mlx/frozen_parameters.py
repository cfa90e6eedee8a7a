"""A new head on a trunk: frozen together with the trunk, nothing can learn; with the head left free it learns."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, freeze_head=True)


def healthy(kit: Kit) -> Subject:
    return _training(kit, freeze_head=False)


def _training(kit: Kit, freeze_head: bool) -> Subject:
    trunk, head = kit.sequential(kit.linear(64, 128), kit.activation("relu")), kit.linear(128, 10)
    model = kit.sequential(trunk, head)
    (model if freeze_head else trunk).freeze()
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))
