"""After a convolution an 8×8 digit has 8 maps of 6×6: a head built for 8×8 maps does not fit, one for 6×6 does."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digit_images


def sick(kit: Kit) -> Subject:
    return _training(kit, features=8 * 8 * 8)


def healthy(kit: Kit) -> Subject:
    return _training(kit, features=8 * 6 * 6)


def _training(kit: Kit, features: int) -> Subject:
    model = kit.sequential(kit.layer("conv2d", 1, 8, 3), kit.activation("relu"), kit.layer("flatten"), kit.linear(features, 10))
    return Subject(model, kit.loader(*digit_images()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))
