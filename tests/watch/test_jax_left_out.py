"""Weights that are differentiated and given to no optimiser."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from sleuth.adapters.jax.watching.channel import GRADIENT, UPDATE, Lane, Part
from sleuth.adapters.jax.watching.unoptimised_weights import holding, left_out
from tests.script.test_aftermath_jax import looked_back, names, pairs, points, weights


def lane(*names: str) -> Lane:
    return Lane(tuple(tuple(name.split(".")) for name in names), ((2,),) * len(names), ("float32",) * len(names))


@pytest.mark.parametrize(
    ("updates", "left"),
    [
        ([("a.w", "b.w")], []),
        ([("a.w",), ("b.w",)], []),
        ([("b.w",)], ["a.w"]),
        ([("w",)], []),  # of which of them cannot be told
        ([], []),  # written by hand, or elsewhere
    ],
)
def test_what_no_update_of_a_step_holds_is_told_by_names(updates: list[tuple[str, ...]], left: list[str]) -> None:
    gradient = Part(GRADIENT, lane("a.w", "b.w"))
    found = left_out(gradient, [gradient, *(Part(UPDATE, lane(*names)) for names in updates)])
    assert [".".join(name) for name in found] == left


def test_an_optimiser_of_a_part_leaves_the_rest_as_it_is() -> None:
    params = {"a": {"w": jnp.ones(2)}, "b": {"w": jnp.ones(2)}}
    tx = holding(optax.sgd(0.5), [("a", "w")])
    updates, _ = tx.update(params, tx.init(params), params)
    assert jax.tree.map(lambda u: float(u[0]), updates) == {"a": {"w": 0.0}, "b": {"w": -0.5}}


def of_two_modules(*, both: bool) -> None:
    x, y = points()
    trunk = nnx.Sequential(nnx.Linear(6, 16, rngs=nnx.Rngs(0)), nnx.tanh)
    head = nnx.Linear(16, 1, rngs=nnx.Rngs(1))
    one = nnx.Optimizer(head, optax.adam(3e-3), wrt=nnx.Param)
    two = nnx.Optimizer(trunk, optax.adam(3e-3), wrt=nnx.Param)

    @nnx.jit
    def step(trunk: Any, head: Any, one: Any, two: Any, x: Any, y: Any) -> Any:
        def loss(trunk: Any, head: Any) -> Any:
            return jnp.mean((head(trunk(x))[:, 0] - y) ** 2)

        value, (of_trunk, of_head) = nnx.value_and_grad(loss, argnums=(0, 1))(trunk, head)
        one.update(head, of_head)
        if both:
            two.update(trunk, of_trunk)
        return value

    rng = np.random.default_rng(1)
    for _ in range(3):
        for rows in rng.permutation(len(x)).reshape(-1, 32):
            step(trunk, head, one, two, x[rows], y[rows])


@pytest.mark.long
@pytest.mark.parametrize("both", [False, True])
def test_a_module_that_no_optimiser_holds_is_named_with_the_line_of_the_update(both: bool) -> None:
    report = looked_back(lambda: of_two_modules(both=both))
    assert names(report) == ([] if both else ["parameters-not-optimised"])
    if not both:
        location = report.culprits[0].finding.location
        assert location is not None
        assert location.text == "one.update(head, of_head)"


@pytest.mark.long
def test_a_part_that_is_written_by_hand_is_not_left_out() -> None:
    def training() -> None:
        x, y = points()
        params, tx, rng = weights(1), optax.adam(3e-3), np.random.default_rng(1)
        state = tx.init(params["out"])

        @jax.jit
        def step(params: Any, state: Any, x: Any, y: Any) -> Any:
            value, grads = jax.value_and_grad(pairs)(params, x, y)
            updates, state = tx.update(grads["out"], state, params["out"])
            hidden = jax.tree.map(lambda p, g: p - 0.02 * g, params["hidden"], grads["hidden"])
            return {"hidden": hidden, "out": optax.apply_updates(params["out"], updates)}, state, value

        for _ in range(3):
            for rows in rng.permutation(len(x)).reshape(-1, 32):
                params, state, _ = step(params, state, x[rows], y[rows])

    assert names(looked_back(training)) == []
