"""What `sleuth run` finds in JAX trainings when they are over, and that sound ones beside them are left alone."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from sleuth.adapters import adapter_named
from sleuth.checks import all_checks
from sleuth.core.contract.adapter import Attended, Discovered
from sleuth.core.engine import Engine
from sleuth.core.report import Report
from sleuth.core.stage import Severity
from sleuth.probes.lab.probe import Probe, all_probes
from sleuth.session import aftermath
from sleuth.session.report import report_of
from sleuth.session.watch import Watch

SECONDS = 120.0
QUICK = {"reading", "describing", "first_pass", "start", "alignment", "connecting", "flowing"}
PROBES = [probe for probe in all_probes() if probe.name in QUICK]


class _Attended(Attended):
    steps = 0

    def end(self) -> None: ...

    def drop(self) -> None: ...


def looked_back(training: Callable[[], None], probes: Sequence[Probe] = PROBES) -> Report:
    """As `sleuth run` hears it."""
    adapter: Any = adapter_named("jax")
    watches: list[Watch] = []

    def begin(found: Discovered) -> Attended:
        options: dict[str, Any] = {"every": 8, "overhead": 0.02, "folder": None, "quiet": True, "name": "", "keeps": True}
        watches.append(Watch(adapter, found.model, found.optimisers, Engine(all_checks()), **options).open())
        return _Attended()

    discovering = adapter.discover(begin)
    discovering.open()
    try:
        training()
    finally:
        discovering.close()
        for watch in watches:
            watch.end()
            aftermath.examine(watch.recorded, SECONDS, lambda text: None, probes)
            watch.recorded.close()
    (watch,) = watches
    found = report_of(watch.recorded, source="run")
    assert not found.notes, found.notes
    return found


def weights(outputs: int, scale: float = 0.4) -> dict[str, Any]:
    one, two = jax.random.split(jax.random.key(5))
    return {
        "hidden": {"w": scale * jax.random.normal(one, (6, 16)), "b": jnp.zeros(16)},
        "out": {"w": scale * jax.random.normal(two, (16, outputs)), "b": jnp.zeros(outputs)},
    }


def answers(p: Any, x: Any) -> Any:
    return jnp.tanh(x @ p["hidden"]["w"] + p["hidden"]["b"]) @ p["out"]["w"] + p["out"]["b"]


def points(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(960, 6)).astype(np.float32)
    return x, (x[:, 0] - 0.5 * x[:, 1] + 0.1 * rng.normal(size=960)).astype(np.float32)


def pairs_of_all(p: Any, x: Any, y: Any) -> Any:
    return jnp.mean((answers(p, x) - y) ** 2)


def pairs(p: Any, x: Any, y: Any) -> Any:
    return jnp.mean((answers(p, x)[:, 0] - y) ** 2)


def columns(p: Any, x: Any, y: Any) -> Any:
    return jnp.mean((answers(p, x) - y[:, None]) ** 2)


def against_a_mean(p: Any, x: Any, y: Any) -> Any:
    """What is spread over all samples is one number, and on purpose."""
    return jnp.mean((answers(p, x)[:, 0] - y) ** 2) + 0.01 * jnp.mean((answers(p, x)[:, 0] - y.mean()) ** 2)


def by_optax(loss: Any, **changes: Any) -> None:
    x, y = points()
    params, tx = changes.get("params") or weights(1), optax.adam(3e-3)
    state, rng = tx.init(params), np.random.default_rng(1)

    @jax.jit
    def step(params: Any, state: Any, x: Any, y: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x, y)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    for _ in range(3):
        for rows in rng.permutation(len(x)).reshape(-1, 32):
            params, state, _ = step(params, state, x[rows], y[rows])


def by_scan() -> None:
    x, _ = points()
    labels = (x[:, 0] > 0).astype(np.int32) + 2 * (x[:, 1] > 0).astype(np.int32)
    tx = optax.adam(3e-3)

    def loss(p: Any, x: Any, y: Any) -> Any:
        return optax.softmax_cross_entropy_with_integer_labels(answers(p, x), y).mean()

    def one(carry: Any, batch: Any) -> Any:
        params, state = carry
        value, grads = jax.value_and_grad(loss)(params, *batch)
        updates, state = tx.update(grads, state, params)
        return (optax.apply_updates(params, updates), state), value

    @jax.jit
    def epoch(params: Any, state: Any, key: Any) -> Any:
        xs = jax.random.permutation(key, x).reshape(30, 32, -1)
        ys = jax.random.permutation(key, labels).reshape(30, 32)
        return jax.lax.scan(one, (params, state), (xs, ys))

    params = weights(4)
    state = tx.init(params)
    for number in range(4):
        (params, state), _ = epoch(params, state, jax.random.key(number))


def names(report: Report) -> list[str]:
    return [culprit.finding.name for culprit in report.culprits if culprit.finding.severity is not Severity.HINT]


def test_a_loss_by_hand_that_compares_all_with_all_is_named_with_its_line() -> None:
    report = looked_back(lambda: by_optax(pairs_of_all))
    assert names(report)[:1] == ["loss-broadcasts"], report.to_text()
    location = report.culprits[0].finding.location
    assert location is not None
    assert location.line == pairs_of_all.__code__.co_firstlineno + 1


@pytest.mark.long
@pytest.mark.parametrize("loss", [pairs, columns, against_a_mean])
def test_losses_by_hand_whose_shapes_fit_are_left_alone(loss: Any) -> None:
    assert names(looked_back(lambda: by_optax(loss))) == []


@pytest.mark.long
def test_weights_that_begin_as_zeros_are_named() -> None:
    nothing = jax.tree.map(jnp.zeros_like, weights(1))
    assert names(looked_back(lambda: by_optax(pairs, params=nothing)))[:1] == ["bad-initialisation"]


@pytest.mark.long
def test_a_scan_over_batches_is_left_alone() -> None:
    report = looked_back(by_scan)
    assert report.steps == 120
    assert names(report) == []


@pytest.mark.parametrize("sign", [1, -1])
def test_a_step_by_hand_that_climbs_is_named(sign: int) -> None:
    def training() -> None:
        (x, y), params, rng = points(), weights(1), np.random.default_rng(1)

        @jax.jit
        def step(params: Any, x: Any, y: Any) -> Any:
            value, grads = jax.value_and_grad(pairs)(params, x, y)
            return jax.tree.map(lambda p, g: p + sign * 0.01 * g, params, grads), value

        for rows in rng.permutation(len(x)).reshape(-1, 32):
            params, _ = step(params, x[rows], y[rows])

    report = looked_back(training)
    assert ("optimiser-setting-odd" in names(report)) is (sign > 0)


def by_scans_in_a_scan(times: int) -> None:
    x, y = points()
    tx = optax.adam(3e-3)

    def one(carry: Any, batch: Any) -> Any:
        params, state = carry
        value, grads = jax.value_and_grad(pairs)(params, *batch)
        updates, state = tx.update(grads, state, params)
        return (optax.apply_updates(params, updates), state), value

    def epoch(carry: Any, key: Any) -> Any:
        rows = jax.random.permutation(key, len(x)).reshape(30, 32)
        return jax.lax.scan(one, carry, (jnp.asarray(x)[rows], jnp.asarray(y)[rows]))

    @jax.jit
    def train(params: Any, state: Any, key: Any) -> Any:
        return jax.lax.scan(epoch, (params, state), jax.random.split(key, 4))

    params = weights(1)
    state = tx.init(params)
    for number in range(times):
        (params, state), _ = train(params, state, jax.random.key(number))


@pytest.mark.parametrize("times", [1, 2])
def test_every_round_of_a_scan_inside_a_scan_is_a_step(times: int) -> None:
    """A whole training may be one call."""
    report = looked_back(lambda: by_scans_in_a_scan(times))
    assert (report.steps, names(report)) == (120 * times, [])
    assert "labels-misaligned" in report.clear
