"""States of optax's optimisers that begin anew, or are never carried on: noticed by their counts, with the line that does it."""

from typing import Any

import jax
import numpy as np
import optax
import pytest

from sleuth.adapters.jax.watching.hub import HUB
from sleuth.adapters.jax.watching.optimiser_states import Begun
from sleuth.core.finding import Finding
from sleuth.core.location import Location
from tests.script.test_aftermath_jax import looked_back, pairs, points, weights


def compiled(tx: Any) -> Any:
    @jax.jit
    def step(params: Any, state: Any, x: Any, y: Any) -> Any:
        value, grads = jax.value_and_grad(pairs)(params, x, y)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    return step


def carried(tx: Any) -> None:
    x, y = points()
    params, rng, step = weights(1), np.random.default_rng(1), compiled(tx)
    state = tx.init(params)
    for _ in range(7):
        for rows in rng.permutation(len(x)).reshape(-1, 48):
            params, state, _ = step(params, state, x[rows], y[rows])


def begun_every_epoch(tx: Any) -> None:
    x, y = points()
    params, rng, step = weights(1), np.random.default_rng(1), compiled(tx)
    for _ in range(7):
        state = tx.init(params)
        for rows in rng.permutation(len(x)).reshape(-1, 48):
            params, state, _ = step(params, state, x[rows], y[rows])


def never_carried(tx: Any) -> None:
    x, y = points()
    params, rng, step = weights(1), np.random.default_rng(1), compiled(tx)
    state = tx.init(params)
    for _ in range(7):
        for rows in rng.permutation(len(x)).reshape(-1, 48):
            params, _, _ = step(params, state, x[rows], y[rows])


def begun_in_the_step(tx: Any) -> None:
    x, y = points()
    params, rng = weights(1), np.random.default_rng(1)

    @jax.jit
    def step(params: Any, x: Any, y: Any) -> Any:
        value, grads = jax.value_and_grad(pairs)(params, x, y)
        updates, _ = tx.update(grads, tx.init(params), params)
        return optax.apply_updates(params, updates), value

    for _ in range(7):
        for rows in rng.permutation(len(x)).reshape(-1, 48):
            params, _ = step(params, x[rows], y[rows])


def begun_before_a_scan(tx: Any) -> None:
    x, y = points()
    step = compiled(tx)

    def one(carry: Any, batch: Any) -> Any:
        params, state, value = step(*carry, *batch)
        return (params, state), value

    @jax.jit
    def train(params: Any, xs: Any, ys: Any) -> Any:
        return jax.lax.scan(one, (params, tx.init(params)), (xs, ys))

    params = weights(1)
    for _ in range(3):  # three trainings
        train(params, x.reshape(20, 48, -1), y.reshape(20, 48))


def rebuilt(training: Any) -> list[Finding]:
    report = looked_back(lambda: training(optax.adam(3e-3)), probes=())
    return [culprit.finding for culprit in report.culprits if culprit.finding.name == "optimiser-rebuilt"]


@pytest.mark.parametrize(
    ("training", "line"),
    [
        (begun_every_epoch, "state = tx.init(params)"),
        (begun_in_the_step, "updates, _ = tx.update(grads, tx.init(params), params)"),
        (never_carried, "params, _, _ = step(params, state, x[rows], y[rows])"),
    ],
)
def test_a_state_that_is_lost_is_named_with_the_line_that_loses_it(training: Any, line: str) -> None:
    (found,) = rebuilt(training)
    assert found.location is not None
    assert found.location.text == line


@pytest.mark.parametrize("training", [carried, begun_before_a_scan])
def test_a_state_that_is_carried_on_is_left_alone(training: Any) -> None:
    assert not rebuilt(training)


def test_an_optimiser_that_remembers_nothing_may_begin_wherever_it_likes() -> None:
    report = looked_back(lambda: begun_in_the_step(optax.sgd(0.01)), probes=())
    assert "optimiser-rebuilt" not in [culprit.finding.name for culprit in report.culprits]


def test_an_optimiser_without_a_state_has_the_line_that_makes_it() -> None:
    def training() -> None:
        tx = optax.sgd(0.1 * (32 // 64))
        carried(tx)

    found = looked_back(training).culprits[0].finding
    assert found.name == "optimiser-setting-odd"
    assert found.location is not None
    assert "optax.sgd(" in found.location.text


def test_the_field_of_an_optimiser_is_optax_s_own_again_after_a_training() -> None:
    before = optax.GradientTransformation.__dict__["init"]
    looked_back(lambda: carried(optax.adam(3e-3)), probes=())
    assert not HUB.listeners
    assert optax.GradientTransformation.__dict__["init"] is before


def test_the_line_of_a_state_is_that_of_the_last_one_before_a_step() -> None:
    begun = Begun()
    for steps in (3, 9):
        begun.note(steps, Location("a.py", steps))
    assert [getattr(begun.before(step), "line", None) for step in (2, 3, 8, 9, 20)] == [None, 3, 3, 9, 9]
