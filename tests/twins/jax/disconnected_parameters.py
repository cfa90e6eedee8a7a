"""Features that are cut off by stop_gradient before the head, so that only the head learns, against features that are not."""

import jax
from flax import nnx

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Net(nnx.Module):
    def __init__(self, cut: bool, *, rngs: nnx.Rngs) -> None:
        self.cut = cut
        self.enter, self.hidden = nnx.Linear(64, 64, rngs=rngs), nnx.Linear(64, 32, rngs=rngs)
        self.head = nnx.Linear(32, 10, rngs=rngs)

    def __call__(self, x):
        features = nnx.relu(self.hidden(nnx.relu(self.enter(x))))
        if self.cut:
            features = jax.lax.stop_gradient(features)
        return self.head(features)


def sick(kit: Kit) -> Subject:
    return _training(kit, cut=True)


def healthy(kit: Kit) -> Subject:
    return _training(kit, cut=False)


def _training(kit: Kit, cut: bool) -> Subject:
    model = Net(cut, rngs=kit.rngs)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=2e-3))
