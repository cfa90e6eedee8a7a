"""Three linear layers on digits: one after the other, or with an activation between them."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def training(kit: Kit, activations: bool) -> Subject:
    layers = [kit.linear(64, 64), kit.linear(64, 32), kit.linear(32, 10)]
    if activations:
        layers = [layers[0], kit.activation("relu"), layers[1], kit.activation("relu"), layers[2]]
    model = kit.sequential(*layers)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))


def sick(kit: Kit) -> Subject:
    return training(kit, activations=False)


def healthy(kit: Kit) -> Subject:
    return training(kit, activations=True)
