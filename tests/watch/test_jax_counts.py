"""Which number among the arguments of a step says how many steps its optimiser has taken."""

from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest
from flax import nnx

import sleuth
from sleuth.adapters.jax.watching.step_inputs import count_among
from tests.watch.jax_trainings import batches

WEIGHTS = {"w": jnp.ones((3, 2))}


def taken_for_count(tx: Any, metrics: Any) -> set[str | None]:
    """The path of the argument, in each of the ways that a step is written."""

    def step(metrics: Any, params: Any, state: Any) -> Any:
        gradients = jax.grad(lambda p: (p["w"] ** 2).sum())(params)
        updates, state = tx.update(gradients, state, params)
        if metrics is not None:
            metrics = {"count": metrics["count"] + 1, "mean": metrics["mean"] / metrics["count"]}
        return metrics, optax.apply_updates(params, updates), state

    given = (metrics, WEIGHTS, tx.init(WEIGHTS))
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(given)[0]]
    found = set()
    for one in (step, jax.jit(step), lambda *args: jax.lax.scan(lambda carry, _: (step(*carry), None), args, length=3)[0]):
        closed = jax.make_jaxpr(one)(*given)
        place = count_among(closed, len(closed.jaxpr.outvars))
        found.add(None if place is None else paths[place])
    return found


@pytest.mark.parametrize("metrics", [None, {"count": jnp.int32(0), "mean": jnp.float32(0)}])
@pytest.mark.parametrize(
    ("tx", "path"),
    [
        (optax.adam(1e-3), "[2][0].count"),
        (optax.sgd(optax.cosine_decay_schedule(0.1, 10), momentum=0.9), "[2][1].count"),
        (optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3)), "[2][1][0].count"),
        # How many small batches, and how many broken gradients in a row, begins at nothing again and again.
        (optax.MultiSteps(optax.sgd(0.1), every_k_schedule=8), None),
        (optax.apply_if_finite(optax.adam(1e-3), max_consecutive_errors=5), None),
        (optax.sgd(0.1, momentum=0.9), None),
    ],
)
def test_the_count_of_an_optimiser_is_told_from_every_other(tx: Any, path: str | None, metrics: Any) -> None:
    assert taken_for_count(tx, metrics) == {path}


@pytest.mark.long
@pytest.mark.parametrize("anew", [False, True])
def test_metrics_that_begin_anew_every_epoch_are_no_optimiser_that_does(anew: bool) -> None:
    model = nnx.Sequential(nnx.Linear(64, 24, rngs=nnx.Rngs(0)), nnx.relu, nnx.Linear(24, 10, rngs=nnx.Rngs(1)))
    tx = optax.adam(1e-3) if anew else optax.sgd(0.1, momentum=0.9)
    optimiser = nnx.Optimizer(model, tx, wrt=nnx.Param)
    with sleuth.watch(model, optimiser, every=1, directory=None, quiet=True) as w:

        @nnx.jit
        def step(model: Any, optimiser: Any, metrics: Any, x: Any, y: Any) -> None:
            def loss(model: Any) -> Any:
                return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()

            value, gradients = nnx.value_and_grad(loss)(model)
            metrics.update(loss=value)
            optimiser.update(model, gradients)

        for _ in range(8):
            metrics = nnx.metrics.Average("loss")
            optimiser = nnx.Optimizer(model, tx, wrt=nnx.Param) if anew else optimiser
            for x, y in batches(12):
                step(model, optimiser, metrics, x, y)
    assert ("optimiser-rebuilt" in [c.finding.name for c in w.report().culprits]) is anew
