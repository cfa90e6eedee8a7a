"""Two groups with rates of their own: the layer that was added last is in neither, and stays as it is."""

import optax
from flax import nnx

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Net(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.enter, self.middle = nnx.Linear(64, 64, rngs=rngs), nnx.Linear(64, 64, rngs=rngs)
        self.head = nnx.Linear(64, 10, rngs=rngs)

    def __call__(self, x):
        return self.head(nnx.relu(self.middle(nnx.relu(self.enter(x)))))


def sick(kit: Kit) -> Subject:
    return _training(kit, {"enter": "slow", "head": "fast"})


def healthy(kit: Kit) -> Subject:
    return _training(kit, {"enter": "slow", "middle": "slow", "head": "fast"})


def _training(kit: Kit, groups: dict[str, str]) -> Subject:
    model = Net(rngs=kit.rngs)

    def labels(params):
        return nnx.map_state(lambda path, _: groups.get(path[0], "other"), params)

    rates = {"slow": optax.adam(2e-3), "fast": optax.adam(3e-3), "other": optax.set_to_zero()}
    tx = optax.multi_transform(rates, labels)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), tx)
