"""Watching compiled steps of JAX: nothing of theirs changes, and what is wrong with them is named."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import sleuth
from sleuth import Report, kernel
from sleuth.adapters.jax.watching import measuring
from sleuth.core.observation import Role, Step
from sleuth.core.statistics import COLUMNS
from tests.watch.jax_trainings import batches, by_hand, cross_entropy, equinox, flax, forward, parameters, plain

PATCHED = {name: getattr(jax, name) for name in ("jit", "grad", "value_and_grad")} | {"apply_updates": optax.apply_updates}


class Watched:
    """Wraps a step, and has its report."""

    def __init__(self, **options) -> None:
        self.options = {"directory": None, "quiet": True, "every": 3, **options}

    def __call__(self, step):
        self.step = sleuth.watch_step(step, **self.options)
        return self.step

    def report(self) -> Report:
        self.step.close()
        assert self.step.watch.watching.trouble is None
        return self.step.report()

    def seen(self, what):
        return self.step.watch.history.many(what)


@pytest.fixture(autouse=True)
def nothing_of_ours_stays_in_jax():
    yield
    now = {name: getattr(jax, name) for name in ("jit", "grad", "value_and_grad")} | {"apply_updates": optax.apply_updates}
    assert all(now[name] is PATCHED[name] for name in PATCHED), now


def first_culprit(report: Report) -> str:
    assert report.culprits, report.notes
    return report.culprits[0].finding.name


LONG = pytest.mark.long


@pytest.mark.parametrize("training", [plain, pytest.param(flax, marks=LONG), pytest.param(equinox, marks=LONG)])
def test_the_weights_after_200_watched_steps_are_equal_to_the_last_bit(training) -> None:
    watched = Watched()
    as_it_is = training(lambda step: step)
    assert all(np.array_equal(a, b) for a, b in zip(as_it_is, training(watched), strict=True))
    report = watched.report()
    assert report.status == "healthy"
    assert (report.steps, report.overhead["recorded_steps"], report.notes) == (200, 67, ())
    assert all(len(watched.seen(role)) == 67 for role in (Role.GRADIENT, Role.WEIGHT, Role.UPDATE))
    assert all(step.heard and step.loss is not None for step in watched.seen(Step))
    # As the model uses them, not as the alphabet has it.
    first, *_, last = watched.seen(Role.GRADIENT)[0].paths
    assert (first, last) in {("z.w", "answer.b"), ("zeroth.kernel", "answer.bias"), ("layers.0.weight", "layers.2.bias")}


def test_memory_that_a_step_takes_and_arguments_that_are_static_are_passed_on() -> None:
    watched = Watched()
    plain(watched, 20, donate_argnums=(0, 1))
    assert watched.report().steps == 20
    assert len(watched.seen(Role.UPDATE)) == 7
    assert watched.step.__name__ == "step"

    @jax.jit
    def double(x, *, times: int = 2):
        return x * times

    ours = sleuth.watch_step(double, quiet=True)
    assert ours.lower(jnp.ones(3)).as_text() == double.lower(jnp.ones(3)).as_text()
    ours.close()


@pytest.mark.parametrize("compile", [True, False])
def test_updates_by_hand_are_told_from_one_step_s_weights_to_the_next(compile: bool) -> None:
    watched = Watched(every=1)
    by_hand(watched, 12, compile=compile)
    assert watched.report().steps == 12
    updates, gradients = watched.seen(Role.UPDATE), watched.seen(Role.GRADIENT)
    assert (len(updates), len(gradients)) == (11, 12)  # nobody knows what became of the last
    for update, gradient in zip(updates, gradients, strict=False):
        rms = [np.sqrt(f.table[:, 1] ** 2 + f.table[:, 2] / f.table[:, 0]) for f in (update, gradient)]
        np.testing.assert_allclose(rms[0], 0.1 * rms[1], rtol=1e-3)


def test_a_rate_far_too_high_is_named() -> None:
    watched = Watched(every=None)
    plain(watched, 60, tx=optax.sgd(30.0))
    assert first_culprit(watched.report()) == "update-too-large"


def test_gradients_that_vanish_are_named() -> None:
    watched = Watched(every=10)
    deep = parameters([64, *[16] * 8, 10], gain=1.0)
    plain(watched, 30, params=deep, tx=optax.sgd(0.05), loss=lambda p, x, y: cross_entropy(forward(p, x, jax.nn.sigmoid), y))
    report = watched.report()
    assert first_culprit(report) == "vanishing-gradients"
    assert report.culprits[0].finding.where == "z.w"


def unstable(params, x, y):
    shares = jax.nn.softmax(forward(params, x))
    return -jnp.log(shares[jnp.arange(len(y)), y]).mean()


LINE = unstable.__code__.co_firstlineno + 2


def test_a_loss_that_breaks_is_named_with_the_user_s_line() -> None:
    watched = Watched(every=None)
    plain(watched, 40, loss=unstable, tx=optax.sgd(50.0))
    finding = watched.report().culprits[0].finding
    assert finding.name == "loss-not-finite"
    assert (finding.location.file, finding.location.line) == (__file__, LINE)
    assert "born in log" in finding.summary


def lengths(params, x, y):
    """The gradient of a root is infinite where the root is zero."""
    scores = forward(params, jnp.where(x > 2, x, 0))
    return jnp.sqrt(jnp.sum(scores**2, axis=1)).mean() + cross_entropy(forward(params, x), y)


def test_a_gradient_that_breaks_while_the_loss_is_finite_is_named() -> None:
    watched = Watched(every=None)
    plain(watched, 20, loss=lengths)
    finding = watched.report().culprits[0].finding
    assert finding.name == "gradient-not-finite"


def test_on_error_stop_raises_before_the_weights_are_given_back() -> None:
    watched, kept = Watched(on_error="stop"), []
    step = None

    def keep(compiled):
        nonlocal step
        step = watched(compiled)

        def call(*args):
            kept.append(args[0])
            return step(*args)

        return call

    with pytest.raises(sleuth.Stopped, match="loss-not-finite"):
        plain(keep, 40, loss=unstable, tx=optax.sgd(50.0))
    assert all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(kept[-1]))
    watched.report()


def test_a_step_that_was_compiled_before_and_not_wrapped_is_said_to_be_unheard() -> None:
    params, step = parameters([64, 8, 10]), jax.jit(jax.value_and_grad(lambda p, x, y: cross_entropy(forward(p, x), y)))
    with sleuth.watch(params, directory=None, quiet=True) as w:
        for x, y in batches(3):
            step(params, x, y)
    report = w.report()
    assert report.status == "unknown"
    assert "sleuth.watch_step(step)" in report.notes[0]


def test_an_exception_of_the_step_is_the_user_s_own() -> None:
    @jax.jit
    def step(params, x):
        return jax.value_and_grad(lambda p: (x @ p["w"]).sum())(params)

    watched = sleuth.watch_step(step, directory=None, quiet=True)
    with pytest.raises(TypeError, match="dot_general"):
        watched({"w": jnp.ones((3, 2)), "b": jnp.ones(2)}, jnp.ones((4, 5)))
    watched.close()


@pytest.mark.parametrize("here", [True, False], ids=["on the host", "on the device"])
def test_statistics_of_the_device_equal_those_of_the_kernel(here: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "on_host", lambda: here)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(300, 257)), rng.normal(1e3, 1, (200, 201)), rng.normal(size=5000) * 1e-25, np.zeros((7, 3))]
    arrays += [rng.normal(size=64) * 1e30, np.array([np.nan, np.inf, -np.inf, 0.0, 2.0]), np.full(3, np.nan), np.zeros((0, 4))]
    arrays = [a.astype(np.float32) for a in arrays]
    sizes, counts = measuring.measure_now([jnp.asarray(a) for a in arrays])
    ours = measuring.table(np.asarray(sizes), np.asarray(counts), [a.size for a in arrays])
    theirs = kernel.measure(arrays)
    at = {column: number for number, column in enumerate(COLUMNS)}
    for column in ("count", "min", "max", "zeros", "nans", "infs"):
        np.testing.assert_array_equal(ours[:, at[column]], theirs[:, at[column]], err_msg=column)
    for column in ("m2", "abs_sum"):
        np.testing.assert_allclose(ours[:, at[column]], theirs[:, at[column]], rtol=1e-6, err_msg=column)
    sums = (table[:, at["mean"]] * table[:, at["count"]] for table in (ours, theirs))
    np.testing.assert_array_less(np.abs(np.subtract(*sums)), 1e-6 * theirs[:, at["abs_sum"]] + 1e-300)


def test_changes_below_the_last_digit_of_half_precision_show_as_zero_in_both_places(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [jnp.ones(8, kind) for kind in (jnp.bfloat16, jnp.float16, jnp.float32)]
    after = [(b.astype(jnp.float32) + 2.0**-14).astype(b.dtype) for b in before]
    for here in (True, False):
        monkeypatch.setattr(measuring, "on_host", lambda here=here: here)
        sizes, counts = measuring.measure_changes(before, after)
        rows = measuring.table(np.asarray(sizes), np.asarray(counts), [8, 8, 8])
        assert rows[:, COLUMNS.index("zeros")].tolist() == [8, 8, 0]
        assert rows[2, COLUMNS.index("mean")] == 2.0**-14
