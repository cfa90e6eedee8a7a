"""Updates that are applied by a call of their own, and whose result is kept, or not."""

from collections.abc import Callable
from typing import Any

import jax
import optax
import pytest

import sleuth
from sleuth import Report
from tests.watch.jax_trainings import batches, cross_entropy, forward, parameters

Keep = Callable[[int, Any, Any], Any]  # the weights to go on with, of the old and the new ones


def trained(keep: Keep, *, compile: bool = True, steps: int = 60) -> Report:
    params, tx = parameters([64, 24, 10]), optax.adam(3e-3)
    state = tx.init(params)
    with sleuth.watch(params, directory=None, quiet=True) as w:
        both = jax.value_and_grad(lambda p, x, y: cross_entropy(forward(p, x), y))
        both = jax.jit(both) if compile else both
        for number, (x, y) in enumerate(batches(steps)):
            _, gradients = both(params, x, y)
            updates, state = tx.update(gradients, state, params)
            new = optax.apply_updates(params, updates)  # here
            params = keep(number, params, new)
    return w.report()


@pytest.mark.parametrize("compile", [True, False])
def test_new_weights_that_nobody_keeps_are_a_missing_step(compile: bool) -> None:
    (culprit,) = trained(lambda number, old, new: old, compile=compile).culprits
    assert culprit.finding.name == "missing-step"
    assert culprit.finding.confidence.name == "CERTAIN"
    assert culprit.finding.location is not None
    assert (culprit.finding.location.text or "").endswith("# here")


@pytest.mark.parametrize("compile", [True, False])
@pytest.mark.parametrize("keep", [lambda number, old, new: new, lambda number, old, new: new if number % 4 == 3 else old])
def test_new_weights_that_are_kept_at_times_are_steps(keep: Keep, compile: bool) -> None:
    report = trained(keep, compile=compile)
    assert not report.culprits
    assert "missing-step" in report.clear


def compiled_as_a_whole(*, applied: bool, kept: bool, steps: int = 60) -> Report:
    params, tx = parameters([64, 24, 10]), optax.adam(3e-3)
    state = tx.init(params)
    with sleuth.watch(params, directory=None, quiet=True) as w:

        @jax.jit
        def step(params: Any, state: Any, x: Any, y: Any) -> Any:
            gradients = jax.grad(lambda p: cross_entropy(forward(p, x), y))(params)
            updates, state = tx.update(gradients, state, params)  # asked
            return optax.apply_updates(params, updates) if applied else params, state

        for x, y in batches(steps):
            new, state = step(params, state, x, y)  # called
            params = new if kept else params
    return w.report()


@pytest.mark.parametrize(("applied", "line"), [(True, "# called"), (False, "# asked")])
def test_a_compiled_step_whose_weights_go_nowhere_is_a_missing_step_with_its_line(applied: bool, line: str) -> None:
    (culprit,) = compiled_as_a_whole(applied=applied, kept=not applied).culprits
    assert culprit.finding.name == "missing-step"
    assert culprit.finding.location is not None
    assert culprit.finding.location.text.endswith(line)


def test_a_compiled_step_whose_weights_are_kept_is_left_alone() -> None:
    assert not compiled_as_a_whole(applied=True, kept=True).culprits
