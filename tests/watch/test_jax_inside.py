"""What is said inside a compiled step of JAX is what a computation by hand says, and what cannot be told is said."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import sleuth
from sleuth.adapters.jax import ADAPTER
from sleuth.adapters.jax.watching import measuring
from sleuth.adapters.jax.watching.compiled_calls import COMBINED
from sleuth.adapters.jax.watching.listener import TAKEN
from sleuth.core.observation import Absent, Failure, LossCall, Predictions, Role, Units
from tests.watch.jax_trainings import batches, cross_entropy, forward, parameters


def watched_steps(make, count: int = 3, **jit):
    """(the watch, what each step was given)."""
    params, given = parameters([64, 12, 10]), []
    with sleuth.watch(params, directory=None, quiet=True, every=1) as w:
        step = jax.jit(make, **jit)
        for x, y in batches(count):
            given.append((jax.tree.map(np.array, params), x, y))
            params = step(params, x, y)
    return w, given


def by_optax(params, x, y):
    gradients = jax.grad(lambda p: cross_entropy(forward(p, x), y))(params)
    return optax.apply_updates(params, jax.tree.map(lambda g: -0.5 * g, gradients))


@pytest.mark.parametrize("here", [True, False], ids=["on the host", "on the device"])
def test_units_answers_and_the_loss_are_those_of_numpy(here: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "on_host", lambda: here)
    w, given = watched_steps(by_optax)
    assert w.watching.trouble is None
    history = w.history
    units, answers, calls = (history.many(kind) for kind in (Units, Predictions, LossCall))
    assert (len(units), len(answers), len(calls)) == (3, 3, 3)
    for (params, x, y), unit, answer, call in zip(given, units, answers, calls, strict=True):
        hidden = np.maximum(x @ params["z"]["w"] + params["z"]["b"], 0)
        scores = hidden @ params["answer"]["w"] + params["answer"]["b"]
        assert (unit.activation, unit.samples) == ("relu", 32)
        np.testing.assert_array_equal(unit.nonzero, np.count_nonzero(hidden, axis=0))
        np.testing.assert_allclose(unit.max, hidden.max(0), rtol=1e-5)
        assert answer.right == (scores.argmax(1) == y).sum()
        assert answer.targets == {int(k): int(n) for k, n in zip(*np.unique(y, return_counts=True), strict=True)}
        logs = scores - np.log(np.exp(scores).sum(1, keepdims=True))
        assert call.family == "cross-entropy"
        assert call.value == pytest.approx(-logs[np.arange(32), y].mean(), rel=1e-5)
    frame = history.many(Role.ACTIVATION)[0]
    assert frame.paths == ("z", "relu", "answer")


def test_a_function_that_was_compiled_in_an_earlier_watch_is_heard_again() -> None:
    """As in a notebook, whose cell is run twice."""
    looks = [len(watched_steps(by_optax)[0].history.many(Role.GRADIENT)) for _ in range(2)]
    assert looks == [3, 3]


def test_a_function_without_gradients_that_was_compiled_before_does_what_it_did() -> None:
    def scores(params, x):
        return forward(params, x)

    params, (x, _) = parameters([64, 12, 10]), next(iter(batches(1)))
    plain = jax.jit(scores)(params, x)
    with sleuth.watch(params, directory=None, quiet=True) as w:
        again = jax.jit(scores)
        np.testing.assert_array_equal(again(params, x), plain)
        assert again.silent is None
    assert w.watching.trouble is None


def _frames(make, here: bool, monkeypatch: pytest.MonkeyPatch, **jit):
    monkeypatch.setattr(measuring, "on_host", lambda: here)
    w, _ = watched_steps(make, **jit)
    assert w.watching.trouble is None
    frames = [frame for role in (Role.GRADIENT, Role.WEIGHT, Role.UPDATE, Role.ACTIVATION) for frame in w.history.many(role)]
    assert frames
    return frames


def in_another(params, x, y):
    return jax.jit(by_optax)(params, x, y)


def in_rounds(params, x, y):
    inner = jax.jit(by_optax)
    return jax.lax.scan(lambda p, batch: (inner(p, *batch), 0), params, (x.reshape(4, 8, -1), y.reshape(4, 8)))[0]


@pytest.mark.parametrize("make", [by_optax, in_another, in_rounds])
def test_what_is_measured_on_the_host_is_what_the_device_measures(make, monkeypatch: pytest.MonkeyPatch) -> None:
    host, device = (_frames(make, here, monkeypatch) for here in (True, False))
    assert [(f.step, f.role, f.paths) for f in host] == [(f.step, f.role, f.paths) for f in device]
    for one, other in zip(host, device, strict=True):
        np.testing.assert_allclose(one.table, other.table, rtol=1e-5, atol=1e-6)


def test_a_step_that_takes_its_memory_is_looked_at_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, taken = (_frames(by_optax, True, monkeypatch, **jit) for jit in ({}, {"donate_argnums": 0}))
    for one, other in zip(kept, taken, strict=True):
        np.testing.assert_array_equal(one.table, other.table)


def test_a_step_that_takes_its_memory_and_writes_by_hand_says_what_is_not_known() -> None:
    def by_hand(params, x, y):
        gradients = jax.grad(lambda p: cross_entropy(forward(p, x), y))(params)
        return jax.tree.map(lambda p, g: p - 0.5 * g, params, gradients)

    w, _ = watched_steps(by_hand, donate_argnums=0)
    absent = {a.what: a.reason for a in w.watching.drain() if isinstance(a, Absent)}
    assert TAKEN in (w.history.why_absent(Role.UPDATE), absent.get(Role.UPDATE))


def test_a_step_with_effects_is_said_to_run_another_form() -> None:
    def loud(params, x, y):
        jax.debug.callback(lambda value: None, x.sum())
        return by_optax(params, x, y)

    w, _ = watched_steps(loud)
    assert COMBINED in w.watching.remarks


def _scalar(params, x):
    return jax.grad(lambda p: (x @ p) ** 2)(params)


def _branch(params, x):
    return jax.jit(lambda p: p if (x @ p).sum() > 0 else -p)(params)


def _shapes(params, x):
    return jax.jit(lambda p: x @ p)(params[:-1])


@pytest.mark.parametrize(
    ("wrong", "phase", "words"),
    [(_scalar, "backward", "loss.mean()"), (_branch, "forward", "jnp.where"), (_shapes, "forward", "features")],
)
def test_an_exception_of_a_script_is_explained_with_the_user_s_line(wrong, phase: str, words: str) -> None:
    with pytest.raises(Exception, match=r"\w") as raised:
        wrong(jnp.ones(3), jnp.ones((2, 3)))
    (failure,) = ADAPTER.explain(raised.value)
    assert isinstance(failure, Failure)
    assert failure.phase == phase
    assert words in (failure.advice or "")
    assert (failure.location.file, failure.location.line) == (__file__, wrong.__code__.co_firstlineno + 1)
