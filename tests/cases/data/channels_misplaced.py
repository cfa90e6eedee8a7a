"""Colour pictures of digits, as image files come (height, width, colour), and as a convolution wants them."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digit_images


def training(kit: Kit, channels_last: bool) -> Subject:
    x, y = digit_images()
    colours = np.concatenate([x, 1 - x, x**2], axis=1).astype(np.float32)
    if channels_last:
        colours = np.ascontiguousarray(colours.transpose(0, 2, 3, 1))
    model = kit.sequential(
        kit.layer("conv2d", 3, 16, 3, padding=1),
        kit.activation("relu"),
        kit.layer("max_pool", 2),
        kit.layer("flatten"),
        kit.linear(16 * 16, 10),
    )
    return Subject(model, kit.loader(colours, y), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=2e-3))


def sick(kit: Kit) -> Subject:
    return training(kit, channels_last=True)


def healthy(kit: Kit) -> Subject:
    return training(kit, channels_last=False)
