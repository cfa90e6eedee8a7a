"""The line from which a model of Flax NNX was put into a mode."""

from typing import Any

import optax
import pytest
from flax import nnx

import sleuth
from sleuth.core.finding import Finding
from tests.watch.jax_trainings import batches

PLAIN = nnx.Module.eval, nnx.Module.train


def found(*, back: bool) -> list[Finding]:
    rngs = nnx.Rngs(0)
    model = nnx.Sequential(nnx.Linear(64, 24, rngs=rngs), nnx.BatchNorm(24, rngs=rngs), nnx.relu, nnx.Linear(24, 10, rngs=rngs))
    optimiser = nnx.Optimizer(model, optax.sgd(0.05), wrt=nnx.Param)
    with sleuth.watch(model, optimiser, every=1, directory=None, quiet=True) as w:

        @nnx.jit
        def step(model: Any, optimiser: Any, x: Any, y: Any) -> None:
            def loss(model: Any) -> Any:
                return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()

            optimiser.update(model, nnx.grad(loss)(model))

        for _ in range(3):
            model.eval()  # here
            if back:
                model.train()
            for x, y in batches(10):
                step(model, optimiser, x, y)
    return [culprit.finding for culprit in w.report().culprits]


@pytest.mark.long
def test_an_eval_that_nothing_takes_back_is_named_with_its_line() -> None:
    (finding,) = found(back=False)
    assert finding.name == "training-in-eval-mode"
    assert finding.location is not None
    assert (finding.location.text or "").endswith("# here")
    assert (nnx.Module.eval, nnx.Module.train) == PLAIN


@pytest.mark.long
def test_an_eval_that_is_taken_back_is_no_illness() -> None:
    assert not found(back=True)
