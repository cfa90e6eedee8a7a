"""A loop whose length is the data's own: JAX cannot go backward through it; one of fixed length is fine."""

import jax
from flax import nnx

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Settling(nnx.Module):
    """Averages until nothing moves any more."""

    def __init__(self, open_end: bool, *, rngs: nnx.Rngs) -> None:
        self.open_end = open_end
        self.enter, self.leave = nnx.Linear(64, 64, rngs=rngs), nnx.Linear(64, 10, rngs=rngs)

    def __call__(self, x):
        x = nnx.tanh(self.enter(x))

        def settled(state):
            x, count = state
            return 0.9 * x + 0.1 * x.mean(1, keepdims=True), count + 1

        if self.open_end:
            x, _ = jax.lax.while_loop(lambda state: state[1] < 3, settled, (x, 0))
        else:
            x, _ = jax.lax.fori_loop(0, 3, lambda _, state: settled(state), (x, 0))
        return self.leave(x)


def sick(kit: Kit) -> Subject:
    return _training(kit, open_end=True)


def healthy(kit: Kit) -> Subject:
    return _training(kit, open_end=False)


def _training(kit: Kit, open_end: bool) -> Subject:
    model = Settling(open_end, rngs=kit.rngs)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))
