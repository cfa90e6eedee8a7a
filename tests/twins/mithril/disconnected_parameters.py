"""Features whose gradient is stopped before the head, so that only the head learns, against features that go on."""

from mithril import models

from sleuth import Subject
from sleuth.testing import Kit
from tests.kits.mithril_kit import plain
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, cut=True)


def healthy(kit: Kit) -> Subject:
    return _training(kit, cut=False)


def _training(kit: Kit, cut: bool) -> Subject:
    stop = [plain(models.StopGradient)] if cut else []
    features = [kit.linear(64, 64), kit.activation("relu"), kit.linear(64, 32), kit.activation("relu")]
    model = kit.sequential(*features, *stop, kit.linear(32, 10))
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=2e-3))
