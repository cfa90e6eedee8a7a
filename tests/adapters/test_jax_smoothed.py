"""Labels that a loss smooths by itself: what is left of it in the end is no fault of the model."""

import jax
import numpy as np
import optax
import pytest
from flax import nnx

from sleuth import Subject
from sleuth.adapters.jax import ADAPTER
from sleuth.core.subject import take_apart
from sleuth.probes.batch.floors import floor_of
from sleuth.probes.lab.probe import Lab
from tests.material import digits

X, Y = (a[:32] for a in digits())
ENTROPY = -(0.91 * np.log(0.91) + 9 * 0.01 * np.log(0.01))  # of a label of which a tenth is spread over ten classes


def smoothed(scores, y):
    return optax.softmax_cross_entropy(scores, optax.smooth_labels(jax.nn.one_hot(y, 10), 0.1)).mean()


def of_logarithms(logs, y):
    return -(optax.smooth_labels(jax.nn.one_hot(y, 10), 0.1) * logs).sum(-1).mean()


def hard(scores, y):
    return optax.softmax_cross_entropy_with_integer_labels(scores, y).mean()


class Net(nnx.Module):
    def __init__(self, last=lambda x: x) -> None:
        self.body, self.last = nnx.Linear(64, 10, rngs=nnx.Rngs(0)), last

    def __call__(self, x):
        return self.last(self.body(x))


@pytest.mark.parametrize(
    ("model", "loss", "floor"),
    [(Net(), smoothed, ENTROPY), (Net(jax.nn.log_softmax), of_logarithms, ENTROPY), (Net(), hard, 0.0)],
)
def test_the_floor_is_what_right_answers_cost(model: nnx.Module, loss, floor: float) -> None:
    subject = Subject(model, (X, Y), loss, optax.adam(1e-3))
    with ADAPTER.bench(subject) as bench:
        found = floor_of(Lab(subject, ADAPTER, 60.0, bench_=bench), take_apart((X, Y)), True)
    # Where nobody can say how low it gets, nothing is said of the model either.
    assert found.value is None or found.value == pytest.approx(floor, abs=0.01)
    if loss is smoothed:
        assert found.value is not None
