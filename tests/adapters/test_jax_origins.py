"""Where NaN is born in JAX: the operation and the user's line, through everything that hides them."""

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sleuth.adapters.jax import ADAPTER
from sleuth.core.observation import Origin
from sleuth.core.subject import Subject, take_apart

X, Y = np.zeros((4, 3), np.float32), np.ones((4, 3), np.float32)
PARAMS = {"w": jnp.ones((3, 3)), "b": jnp.zeros(3)}


def layer(params: Any, x: Any) -> Any:
    return x @ params["w"] + params["b"]


def mse(output: Any, target: Any) -> Any:
    return ((output - target) ** 2).mean()


def plain(params: Any, x: Any) -> Any:
    return jnp.log(layer(params, x))  # here


def jitted(params: Any, x: Any) -> Any:
    @jax.jit
    def inner(h: Any) -> Any:
        return jnp.log(h)  # here

    return inner(layer(params, x))


def mapped(params: Any, x: Any) -> Any:
    return jax.vmap(lambda row: jnp.log(layer(params, row)))(x)  # here


def checkpointed(params: Any, x: Any) -> Any:
    @jax.checkpoint
    def inner(h: Any) -> Any:
        return jnp.log(h)  # here

    return inner(layer(params, x))


def scanned(params: Any, x: Any) -> Any:
    def body(state: Any, row: Any) -> Any:
        return state, jnp.log(row + state)  # here

    return jax.lax.scan(body, jnp.zeros(3), layer(params, x))[1]


def repeated(params: Any, x: Any) -> Any:
    def body(state: Any) -> Any:
        count, h = state
        return count + 1, jnp.log(h)  # here

    return jax.lax.while_loop(lambda state: state[0] < 2, body, (0, layer(params, x)))[1]


def chosen(params: Any, x: Any) -> Any:
    def bad(h: Any) -> Any:
        return jnp.log(h)  # here

    return jax.lax.cond(x.sum() > 1, jnp.sin, bad, layer(params, x))


@jax.custom_vjp
def by_hand(x: Any) -> Any:
    return jnp.sin(x)


def backward(x: Any, gradient: Any) -> Any:
    return (gradient / x,)


by_hand.defvjp(lambda x: (jnp.sin(x), x), backward)


def hand_written(params: Any, x: Any) -> Any:
    return by_hand(layer(params, x))  # here


def root(params: Any, x: Any) -> Any:
    return jnp.sqrt(layer(params, x))  # here


def hidden_by_where(params: Any, x: Any) -> Any:
    h = layer(params, x)
    return jnp.where(h > 0, jnp.sqrt(h), 0.0)  # here


def norm(params: Any, x: Any) -> Any:
    return layer(params, x) + jnp.linalg.norm(layer(params, x))  # here


def masked(params: Any, x: Any) -> Any:
    scores = jnp.where(x > 1, layer(params, x), -jnp.inf)
    return jax.nn.softmax(scores)  # here


FORWARD = [plain, jitted, mapped, checkpointed, scanned, repeated, chosen]
BACKWARD = {hand_written: "div", root: "sqrt", hidden_by_where: "sqrt", norm: "norm"}


def origin_of(apply: Callable[..., Any]) -> Origin:
    subject = Subject((apply, PARAMS), None, mse)
    with ADAPTER.bench(subject) as bench:
        found = ADAPTER.origin(bench, take_apart((X, Y)))
    assert found is not None
    return found


def line_of(function: Callable[..., Any]) -> int:
    lines, start = inspect.getsourcelines(function)
    return start + next(i for i, text in enumerate(lines) if text.rstrip().endswith("# here"))


@pytest.mark.parametrize("apply", FORWARD)
def test_the_line_of_a_forward_birth_is_found(apply: Callable[..., Any]) -> None:
    found = origin_of(apply)
    assert (found.operation, found.direction) == ("log", "forward")
    assert found.location is not None
    assert (found.location.file, found.location.line) == (__file__, line_of(apply))
    assert found.inputs[0] == (0.0, 0.0)


@pytest.mark.parametrize(("apply", "operation"), BACKWARD.items())
def test_the_line_of_a_backward_birth_is_found(apply: Callable[..., Any], operation: str) -> None:
    found = origin_of(apply)
    assert (found.operation, found.direction) == (operation, "backward")
    assert found.location is not None
    assert found.location.line == line_of(apply)


def test_a_row_that_is_masked_as_a_whole_breaks_in_the_softmax() -> None:
    found = origin_of(masked)
    assert found.operation == "softmax"
    assert found.location is not None
    assert found.location.line == line_of(masked)


def test_a_mask_of_minus_infinity_is_innocent() -> None:
    def causal(params: Any, x: Any) -> Any:
        scores = jnp.where(jnp.tri(4, 3, dtype=bool), layer(params, x), -jnp.inf)
        return jax.nn.softmax(scores)

    with ADAPTER.bench(Subject((causal, PARAMS), None, mse)) as bench:
        assert ADAPTER.origin(bench, take_apart((X, Y))) is None
