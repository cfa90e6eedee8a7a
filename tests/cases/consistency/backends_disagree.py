"""A model and the same one written by hand, whose norm keeps the epsilon that another framework has by default."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.kits import numpy_layers as by_hand
from tests.kits.numpy_kit import NumpyKit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, epsilon=1e-3)


def healthy(kit: Kit) -> Subject:
    return _training(kit, epsilon=None)


def _training(kit: Kit, epsilon: float | None) -> Subject:
    model = kit.sequential(kit.linear(64, 32), kit.layer("layernorm", 32), kit.activation("relu"), kit.linear(32, 10))
    norm = by_hand.LayerNorm(32)
    norm.eps = epsilon or getattr(kit, "norm_epsilon", 1e-5)
    twin = by_hand.Sequential(by_hand.Linear(64, 32), norm, by_hand.ReLU(), by_hand.Linear(32, 10))
    reference = Subject(twin, None, NumpyKit().loss("cross-entropy"), name="the model by hand")
    loader, loss = kit.loader(*digits()), kit.loss("cross-entropy")
    return Subject(model, loader, loss, kit.optimiser(model, "adam", lr=3e-3), reference=reference)
