"""A primitive of the user's that returns ones in the shape of its input, before the first layer; and a model without it."""

from typing import Any

import mithril as ml
import numpy as np
from mithril import models

from sleuth import Subject
from sleuth.testing import Kit
from tests.kits.mithril_kit import Piece, plain
from tests.material import digits


def ones_of(input: np.ndarray, cache: Any = None) -> np.ndarray:
    return np.ones_like(input)


def ones_of_grad(output_gradient: np.ndarray, cache: dict[str, Any], idx: int, *inputs: Any) -> np.ndarray:
    return np.zeros_like(output_gradient)


ml.NumpyBackend.register_primitive(ones_of, ones_of_grad)


def ones() -> Piece:
    keys = {name: models.BaseKey(shape=[("Var", ...)], type=ml.Tensor) for name in ("input", "output")}
    return plain(lambda: models.CustomPrimitiveModel(formula_key="ones_of", **keys))


def sick(kit: Kit) -> Subject:
    return _training(kit, [ones()])


def healthy(kit: Kit) -> Subject:
    return _training(kit, [])


def _training(kit: Kit, first: list[Piece]) -> Subject:
    model = kit.sequential(*first, kit.linear(64, 64), kit.activation("relu"), kit.linear(64, 10))
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))
