"""A function that was traced in single precision, done again in double precision."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sleuth.adapters.jax.watching.float64 import widening


def layers(w: Any, x: Any) -> Any:
    h = jax.nn.gelu(x @ w)
    return jax.nn.softmax(jax.nn.relu(h - h.mean(-1, keepdims=True)) @ w.T).sum(0)


def repeated(w: Any, x: Any) -> Any:
    last, all_ = jax.lax.scan(lambda h, row: (jnp.tanh(h @ w + row), h.sum()), jnp.zeros(x.shape[1], x.dtype), x)
    return last.sum() + all_


def until(w: Any, x: Any) -> Any:
    return jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, jnp.sin(s[1] @ w)), (0, x))[1]


def chosen(w: Any, x: Any) -> Any:
    return jax.lax.cond(x[0, 0] > 0, lambda a: a @ w, lambda a: a - 0.1, x)


def compiled_inside(w: Any, x: Any) -> Any:
    return jax.jit(lambda a: jax.checkpoint(jnp.exp)(a @ w) * 0.5)(x)


@pytest.mark.parametrize("function", [layers, repeated, until, chosen, compiled_inside])
def test_values_and_gradients_are_those_of_the_function_itself(function: Callable[[Any, Any], Any]) -> None:
    rng = np.random.default_rng(0)
    w, x = rng.normal(size=(4, 4)) / 2, rng.normal(size=(5, 4))
    closed = jax.make_jaxpr(function)(jnp.asarray(w, jnp.float32), jnp.asarray(x, jnp.float32))
    with jax.enable_x64(True):
        wide = widening(closed)
        own, mine = function(jnp.asarray(w), jnp.asarray(x)), wide(jnp.asarray(w), jnp.asarray(x))[0]
        assert mine.dtype == np.float64
        # Constants were rounded to single precision when it was traced.
        np.testing.assert_allclose(mine, own, rtol=1e-6)
        if function is not until:  # loops without an end that is known have no gradient backwards
            slopes = [
                jax.grad(lambda v, f=f: jnp.sum(f(v, jnp.asarray(x))))(jnp.asarray(w)) for f in (function, lambda *a: wide(*a)[0])
            ]
            np.testing.assert_allclose(slopes[1], slopes[0], rtol=1e-5, atol=1e-6)


def test_random_numbers_stay_what_they_were() -> None:
    def noisy(w: Any, key: Any) -> Any:
        return w + jax.random.normal(key, w.shape, jnp.float32).astype(w.dtype)

    w, key = jnp.zeros(6), jax.random.key(3)
    closed = jax.make_jaxpr(noisy)(w, key)
    with jax.enable_x64(True):
        np.testing.assert_allclose(widening(closed)(jnp.zeros(6, jnp.float64), key)[0], noisy(w, key), rtol=1e-5)


def test_in_the_precision_that_it_was_traced_in_nothing_changes() -> None:
    w, x = jnp.ones((4, 4)), jnp.ones((5, 4))
    closed = jax.make_jaxpr(layers)(w, x)
    assert widening(closed)(w, x)[0].dtype == np.float32
