"""Two layers with the root of what ReLU lets through between them: a root of zero has no slope, one that is kept above it has."""

import numpy as np
from mithril import models

from sleuth import Subject
from sleuth.testing import Kit
from tests.kits.mithril_kit import Piece
from tests.material import digits


def root(least: float) -> Piece:
    return Piece(
        lambda names: [models.Relu(), models.Add().connect(right=names["least"]), models.Sqrt()],
        constants={"least": np.array(least, np.float32)},
    )


def sick(kit: Kit) -> Subject:
    return _training(kit, least=0.0)


def healthy(kit: Kit) -> Subject:
    return _training(kit, least=0.1)


def _training(kit: Kit, least: float) -> Subject:
    model = kit.sequential(kit.linear(64, 64), root(least), kit.linear(64, 10))
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))
