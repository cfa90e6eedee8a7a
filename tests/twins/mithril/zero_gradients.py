"""A code between two layers that a primitive of the user's rounds, whose derivative is zero; or that stays as it is."""

from typing import Any

import mithril as ml
import numpy as np
from mithril import models

from sleuth import Subject
from sleuth.testing import Kit, Training
from tests.kits.mithril_kit import Piece, plain
from tests.material import digits

SOURCE = "watch"


def quarters(input: np.ndarray, cache: Any = None) -> np.ndarray:
    return np.round(4 * input) / 4


def quarters_grad(output_gradient: np.ndarray, cache: dict[str, Any], idx: int, *inputs: Any) -> np.ndarray:
    return np.zeros_like(output_gradient)


ml.NumpyBackend.register_primitive(quarters, quarters_grad)


def rounded() -> Piece:
    keys = {name: models.BaseKey(shape=[("Var", ...)], type=ml.Tensor) for name in ("input", "output")}
    return plain(lambda: models.CustomPrimitiveModel(formula_key="quarters", **keys))


def training(kit: Kit, rounds: bool) -> Training:
    code = [rounded()] if rounds else []
    model = kit.sequential(kit.linear(64, 64), kit.activation("tanh"), kit.linear(64, 32), *code, kit.linear(32, 10))
    subject = Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))
    return Training(subject, steps=240, options={"every": 10})


def sick(kit: Kit) -> Training:
    return training(kit, rounds=True)


def healthy(kit: Kit) -> Training:
    return training(kit, rounds=False)
