"""Derivatives that somebody wrote by hand in a JAX training: wrong ones are named with their line when it is over."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sleuth.probes.lab.probe import all_probes
from tests.script.test_aftermath_jax import PROBES, answers, looked_back, points, weights

OF_DERIVATIVES = [p for p in all_probes() if p in PROBES or p.name == "gradient_check"]


def bell(sign: float) -> Callable[[Any], Any]:
    @jax.custom_vjp
    def bump(x: Any) -> Any:
        return jnp.exp(-x * x)

    def bump_back(kept: Any, slope: Any) -> Any:
        x, y = kept
        return (sign * 2.0 * x * y * slope,)

    bump.defvjp(lambda x: (jnp.exp(-x * x), (x, jnp.exp(-x * x))), bump_back)
    return bump


def power(factor: float) -> Callable[[Any], Any]:
    @jax.custom_jvp
    def third(x: Any) -> Any:
        return x**3

    @third.defjvp
    def third_slope(given: Any, moved: Any) -> Any:
        return third(given[0]), factor * given[0] ** 2 * moved[0]

    return third


def at_once(function: Callable[[Any], Any], p: Any, x: Any) -> Any:
    return answers(p, function(x @ p["first"]))


def by_sample(function: Callable[[Any], Any], p: Any, x: Any) -> Any:
    return jax.vmap(lambda one: answers(p, function(one @ p["first"])))(x)


def twice_over(function: Callable[[Any], Any], p: Any, x: Any) -> Any:
    return answers(p, jax.lax.scan(lambda h, _: (function(h @ p["first"]), None), x, None, length=2)[0])


def train(function: Callable[[Any], Any], model: Callable[..., Any]) -> None:
    x, y = points()
    params = {**weights(1), "first": 0.3 * jax.random.normal(jax.random.key(8), (6, 6))}

    def loss(p: Any, x: Any, y: Any) -> Any:
        return jnp.mean((model(function, p, x)[:, 0] - y) ** 2)

    @jax.jit
    def step(p: Any, x: Any, y: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(p, x, y)
        return jax.tree.map(lambda w, g: w - 0.02 * g, p, grads), value

    rng = np.random.default_rng(1)
    for rows in rng.permutation(len(x)).reshape(-1, 32):
        params, _ = step(params, x[rows], y[rows])


@pytest.mark.parametrize("model", [at_once, by_sample, twice_over])
def test_a_backward_with_the_wrong_sign_is_named_with_its_line(model: Callable[..., Any]) -> None:
    found = looked_back(lambda: train(bell(+1), model), OF_DERIVATIVES).culprits[0].finding
    assert found.name == "gradient-wrong"
    assert found.location is not None
    assert "def bump_back" in found.location.text


def test_a_forward_derivative_with_a_wrong_factor_is_named() -> None:
    found = looked_back(lambda: train(power(2.0), at_once), OF_DERIVATIVES).culprits[0].finding
    assert found.name == "gradient-wrong"
    assert found.location is not None
    assert found.location.text.startswith(("@third.defjvp", "def third_slope"))


@pytest.mark.parametrize("function", [bell(-1), power(3.0)])
def test_a_derivative_that_is_right_is_left_alone(function: Callable[[Any], Any]) -> None:
    report = looked_back(lambda: train(function, by_sample), OF_DERIVATIVES)
    assert "gradient-wrong" in report.clear
    assert not report.culprits, report.to_text()


def test_without_a_derivative_of_ones_own_there_is_nothing_to_compare() -> None:
    report = looked_back(lambda: train(jnp.tanh, at_once), OF_DERIVATIVES)
    assert "written by hand" in report.not_examined["gradient-wrong"]
