"""Sines of far too high a frequency: images that look alike get unrelated features, so no batch helps with the next."""

from flax import nnx

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, frequency=300.0)


def healthy(kit: Kit) -> Subject:
    return _training(kit, frequency=0.3)


def _training(kit: Kit, frequency: float) -> Subject:
    # Flax starts with larger weights than PyTorch: the loss would begin high, and fall as they settle.
    small = nnx.initializers.variance_scaling(1 / 3, "fan_in", "uniform")
    hidden = nnx.Linear(128, 32, kernel_init=small, rngs=kit.rngs)
    model = kit.sequential(
        kit.layer("waves", 64, 128, frequency), hidden, nnx.relu, nnx.Linear(32, 10, kernel_init=small, rngs=kit.rngs)
    )
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "sgd", lr=0.1))
