"""Adam at a rate that rewrites whole layers at each step, and at an ordinary one."""

from sleuth import Subject
from sleuth.testing import Kit, Training
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Training:
    return _training(kit, lr=0.5)


def healthy(kit: Kit) -> Training:
    return _training(kit, lr=1e-3)


def _training(kit: Kit, lr: float) -> Training:
    model = kit.mlp(64, 64, 64, 10, activation="tanh")
    subject = Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=lr))
    # The first steps are the large ones: left to itself, a watch looks at each of the first four.
    return Training(subject, steps=300, options={"every": 1})
