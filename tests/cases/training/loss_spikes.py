"""How much ink the lower half of a digit holds, told from the upper half. Two targets are still in the scanner's own units."""

from sleuth import Subject
from sleuth.testing import Kit, Training
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Training:
    return _training(kit, unscaled=[100, 1300])


def healthy(kit: Kit) -> Training:
    return _training(kit, unscaled=[])


def _training(kit: Kit, unscaled: list[int]) -> Training:
    x, _ = digits()
    ink = 255 * x[:, 32:].sum(1, keepdims=True)
    target = (ink - ink.mean()) / ink.std()
    target[unscaled] = ink[unscaled] / 16
    pixels = x[:, :32]
    pixels = pixels[:, pixels.std(0) > 0.1]
    model = kit.mlp(pixels.shape[1], 32, 1)
    optimiser = kit.optimiser(model, "adam", lr=1e-3)
    return Training(Subject(model, kit.loader(pixels, target), kit.loss("l1"), optimiser), steps=800)
