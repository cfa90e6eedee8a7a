"""Sequences in JAX: samples that a reshape mixes, padding that the loss counts, the next element as the target."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from sleuth.core.report import Report
from sleuth.probes.lab.probe import all_probes
from tests.script.test_aftermath_jax import looked_back

PROBES = [
    probe
    for probe in all_probes()
    if probe.name in ("reading", "describing", "first_pass", "flowing", "causality", "dependence", "padding")
]
LENGTH, FEATURES, WORDS = 12, 3, 11


def recurrent(p: Any, frames: Any) -> Any:
    """`frames`: time first."""

    def tick(state: Any, frame: Any) -> Any:
        state = jnp.tanh(frame @ p["inward"] + state @ p["around"])
        return state, state

    return jax.lax.scan(tick, jnp.zeros((frames.shape[1], 16)), frames)[1]


def weights(inputs: int, outputs: int) -> dict[str, Any]:
    keys = jax.random.split(jax.random.key(0), 3)
    shapes = {"inward": (inputs, 16), "around": (16, 16), "outward": (16, outputs)}
    return {name: 0.3 * jax.random.normal(key, shape) for (name, shape), key in zip(shapes.items(), keys, strict=True)}


def train(loss: Any, params: Any, batches: Any) -> Report:
    tx = optax.adam(1e-2)

    def training() -> None:
        p, state = params, tx.init(params)

        @jax.jit
        def step(p: Any, state: Any, *batch: Any) -> Any:
            value, grads = jax.value_and_grad(loss)(p, *batch)
            updates, state = tx.update(grads, state, p)
            return optax.apply_updates(p, updates), state, value

        for batch in batches:
            p, state, _ = step(p, state, *batch)

    return looked_back(training, PROBES)


def found(report: Report, name: str) -> list[Any]:
    return [culprit.finding for culprit in report.culprits if culprit.finding.name == name]


@pytest.mark.parametrize("torn", [True, False])
def test_a_reshape_in_place_of_a_transpose_is_named_with_its_line(torn: bool) -> None:
    def loss(p: Any, x: Any, y: Any) -> Any:
        frames = jnp.swapaxes(x, 0, 1)
        if torn:
            frames = x.reshape(LENGTH, len(x), FEATURES)
        return optax.softmax_cross_entropy_with_integer_labels(recurrent(p, frames)[-1] @ p["outward"], y).mean()

    rng = np.random.default_rng(0)
    signals = rng.normal(size=(30, 32, LENGTH, FEATURES)).astype(np.float32)
    batches = [(x, (x[:, -1, 0] > 0).astype(np.int32)) for x in signals]
    mixed = found(train(loss, weights(FEATURES, 2), batches), "samples-mix")
    assert [f.location.text for f in mixed] == (["frames = x.reshape(LENGTH, len(x), FEATURES)"] if torn else [])


def sentences() -> list[tuple[np.ndarray]]:
    rng = np.random.default_rng(0)
    ids = np.zeros((960, LENGTH + 8), np.int32)
    for row in ids:
        length = rng.integers(4, 10)
        row[:length] = rng.integers(1, WORDS, length)
    return [(rows,) for rows in ids.reshape(30, 32, -1)]


@pytest.mark.parametrize("masked", [True, False])
def test_padding_is_known_where_the_target_is_the_input_a_position_later(masked: bool) -> None:
    def loss(p: Any, ids: Any) -> Any:
        frames = jnp.swapaxes(p["words"][ids[:, :-1]], 0, 1)
        scores = jnp.swapaxes(recurrent(p, frames), 0, 1) @ p["outward"]
        each = optax.softmax_cross_entropy_with_integer_labels(scores, ids[:, 1:])
        known = ids[:, 1:] != 0
        return (each * known).sum() / known.sum() if masked else each.mean()

    params = {**weights(6, WORDS), "words": jax.random.normal(jax.random.key(3), (WORDS, 6))}
    report = train(loss, params, sentences())
    assert bool(found(report, "padding-counts-in-loss")) is not masked
    assert "future-leaks" in report.clear
