"""A rate for the last steps of an Adam fine-tuning, taken over for SGD from scratch; and one for SGD."""

from sleuth import Subject
from sleuth.testing import Kit, Training
from tests.material import digits

SOURCE = "watch"


def training(kit: Kit, lr: float) -> Training:
    model = kit.mlp(64, 64, 10)
    subject = Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "sgd", lr=lr))
    return Training(subject, steps=240, options={"every": 10})


def sick(kit: Kit) -> Training:
    return training(kit, lr=1e-5)


def healthy(kit: Kit) -> Training:
    return training(kit, lr=0.1)
