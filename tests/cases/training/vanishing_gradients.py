"""Nine layers between digits and their classes: through sigmoids the gradient dies, through ReLUs it arrives."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits

WIDTHS = (64, *[32] * 8, 10)


def sick(kit: Kit) -> Subject:
    model = kit.mlp(*WIDTHS, activation="sigmoid")
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "sgd", lr=0.1))


def healthy(kit: Kit) -> Subject:
    model = kit.mlp(64, 64, 32, 32, 10)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))
