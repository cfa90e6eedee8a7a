"""What every watch promises, kept for JAX: a value that is not finite is met at its step, memory is read, and no error of ours
reaches the training."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import sleuth
from sleuth.adapters.common.process_memory import ProcessMemory
from sleuth.adapters.jax.watching.compiled_calls import CompiledCalls
from sleuth.adapters.jax.watching.executables import Compiled
from sleuth.adapters.jax.watching.hub import Hub
from sleuth.adapters.jax.watching.listener import JaxListener
from sleuth.adapters.jax.watching.nonfinite_check import Tripwire
from sleuth.adapters.jax.watching.seen_batches import Passing
from sleuth.adapters.listening.pace import Pace
from sleuth.core.observation import Memory, NotFinite

STEPS = 12


def points() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(STEPS, 8, 4)).astype(np.float32), rng.normal(size=(STEPS, 8, 1)).astype(np.float32)


def weights() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    return {name: jnp.asarray(rng.normal(size=shape), jnp.float32) for name, shape in (("first", (4, 5)), ("last", (5, 1)))}


def squared(params: Any, x: Any, y: Any) -> Any:
    return jnp.mean((jnp.tanh(x @ params["first"]) @ params["last"] - y) ** 2)


def compiled(x: np.ndarray, y: np.ndarray, loss: Any = squared) -> Any:
    """A step that leaves out what is not finite."""
    params, tx = weights(), optax.apply_if_finite(optax.adam(1e-2), max_consecutive_errors=3)
    state = tx.init(params)

    @jax.jit
    def step(params: Any, state: Any, x: Any, y: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        updates, state = tx.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    for row, goal in zip(x, y, strict=True):
        params, state, _ = step(params, state, row, goal)
    return params


def eager(x: np.ndarray, y: np.ndarray) -> Any:
    params = weights()
    for row, goal in zip(x, y, strict=True):
        gradients = jax.grad(squared)(params, row, goal)
        params = optax.apply_updates(params, jax.tree.map(lambda g: -0.01 * g, gradients))
    return params


def scanned(x: np.ndarray, y: np.ndarray) -> Any:
    """The whole training is one compiled loop, called twice."""

    @jax.jit
    def epoch(params: Any, x: Any, y: Any) -> Any:
        def body(params: Any, batch: Any) -> Any:
            value, gradients = jax.value_and_grad(squared)(params, *batch)
            return optax.apply_updates(params, jax.tree.map(lambda g: -0.01 * g, gradients)), value

        return jax.lax.scan(body, params, (x, y))

    params, half = weights(), STEPS // 2
    for part in (slice(half), slice(half, STEPS)):
        params, _ = epoch(params, x[part], y[part])
    return params


TRAININGS = {"compiled": compiled, "eager": eager, "scanned": scanned}


def watched(training: Any, *args: Any, **options: Any) -> Any:
    with sleuth.watch(weights(), directory=None, quiet=True, **options) as w:
        training(*points(), *args)
    assert w.watching.trouble is None
    return w


def met(w: Any) -> list[NotFinite]:
    return list(w.history.many(NotFinite))


@pytest.mark.parametrize("name", TRAININGS)
@pytest.mark.parametrize("at", [0, 7])
def test_a_loss_that_is_not_finite_is_met_once_and_at_its_step(name: str, at: int) -> None:
    x, y = points()
    y[at, 3] = np.nan
    with sleuth.watch(weights(), directory=None, quiet=True) as w:
        TRAININGS[name](x, y)
    losses = [n for n in met(w) if n.what == "loss"]
    assert [(n.step, n.nans) for n in losses] == [(at, 1)]


def rooted(params: Any, x: Any, y: Any) -> Any:
    """The slope of a root is infinite where the root is zero."""
    return squared(params, x, y) + jnp.sqrt(jnp.sum((x * 0) @ params["first"]))


def test_a_gradient_that_is_not_finite_is_met_by_the_name_of_its_parameter() -> None:
    first = met(watched(compiled, rooted))[0]
    assert (first.step, first.what, first.where) == (0, "gradient", "first")
    assert first.nans + first.infs == 20


@pytest.mark.parametrize("name", ["compiled", "eager"])
def test_the_memory_of_the_process_is_read(name: str) -> None:
    readings = list(watched(TRAININGS[name]).history.many(Memory))
    assert readings
    assert readings[0].step == 0
    assert all(r.bytes > 1 << 20 for r in readings)


BREAKING = [
    (Hub, "owner"),
    (Hub, "eager_gradient"),
    (Hub, "eager_update"),
    (CompiledCalls, "_prepare"),
    (CompiledCalls, "_called"),
    (CompiledCalls, "_called_first"),
    (Compiled, "form_for"),
    (Compiled, "is_ready"),
    (Compiled, "_signature"),
    (JaxListener, "gradient"),
    (JaxListener, "_step_ended"),
    (Passing, "take"),
    (Tripwire, "add"),
    (Pace, "looks_at"),
    (ProcessMemory, "after_step"),
]


@pytest.mark.parametrize("name", ["compiled", "eager"])
@pytest.mark.parametrize(("owner", "method"), BREAKING, ids=[f"{owner.__name__}.{method}" for owner, method in BREAKING])
def test_an_error_of_ours_leaves_the_training_as_it_is(
    name: str, owner: type, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = TRAININGS[name](*points())
    failed = []

    def broken(*args: Any, **kwargs: Any) -> None:
        failed.append(method)
        raise RuntimeError("of ours")

    with sleuth.watch(weights(), directory=None, quiet=True) as w, monkeypatch.context() as patched:
        patched.setattr(owner, method, broken)
        found = TRAININGS[name](*points())
    assert all(np.array_equal(found[key], expected[key]) for key in expected)
    if failed:
        said = [w.watching.trouble or "", *w.watching.remarks, *w.report().not_examined.values()]
        assert any("of ours" in line for line in said), said
