"""A new head on a trunk: frozen together with the trunk, nothing can learn; with the head left free it learns."""

from flax import nnx

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Net(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.trunk, self.head = nnx.Linear(64, 128, rngs=rngs), nnx.Linear(128, 10, rngs=rngs)

    def __call__(self, x):
        return self.head(nnx.relu(self.trunk(x)))


def sick(kit: Kit) -> Subject:
    return _training(kit, "new_head")


def healthy(kit: Kit) -> Subject:
    return _training(kit, "head")


def _training(kit: Kit, name: str) -> Subject:
    model = Net(rngs=kit.rngs)
    trained = nnx.All(nnx.Param, nnx.PathContains(name))
    optimiser = nnx.Optimizer(model, kit.optimiser(model, "adam", lr=3e-3), wrt=trained)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), optimiser)
