"""One bias of the dict was made by np.zeros in float64, and the other weights are float32; or all are alike."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def training(kit: Kit, dtype: type) -> Subject:
    physical, params = kit.mlp(64, 64, 10)
    last = list(params)[-1]
    params = {**params, last: np.zeros(params[last].shape, dtype)}
    model = (physical, params)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))


def sick(kit: Kit) -> Subject:
    return training(kit, np.float64)


def healthy(kit: Kit) -> Subject:
    return training(kit, np.float32)
