"""An optimiser of the user's own whose rate is a division of whole numbers, which is zero; and of floats."""

import jax
import optax

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, rate=3 // 10)


def healthy(kit: Kit) -> Subject:
    return _training(kit, rate=3 / 10)


def _training(kit: Kit, rate: float) -> Subject:
    def update(gradients, state, params=None):
        return jax.tree.map(lambda g: -rate * g, gradients), state

    model = kit.mlp(64, 32, 10)
    own = optax.GradientTransformation(lambda params: optax.EmptyState(), update)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), own)
