"""Rows that a table does not have: JAX reads the nearest one and says nothing, and `sleuth run` says it."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.script.test_aftermath_jax import looked_back

WORDS, LENGTH, PADDING = 40, 8, 99


def sentences(highest: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    ids = rng.integers(0, highest + 1, (512, LENGTH)).astype(np.int32)
    return ids, (ids < 20).mean(1).astype(np.float32)


def plainly(table: Any, ids: Any) -> Any:
    return table[ids].mean(1)


def sample_by_sample(table: Any, ids: Any) -> Any:
    return jax.vmap(lambda own: jax.vmap(lambda one: table[one])(own).mean(0))(ids)


def in_half_precision(table: Any, ids: Any) -> Any:
    return table.astype(jnp.bfloat16)[ids].mean(1).astype(jnp.float32)


def masked(table: Any, ids: Any) -> Any:
    known = (ids < WORDS)[..., None]
    return (table[ids] * known).sum(1) / LENGTH


def clipped_on_purpose(table: Any, ids: Any) -> Any:
    return jnp.take(table, ids, axis=0, mode="clip").mean(1)


def unknown_is_zero(table: Any, ids: Any) -> Any:
    return table.at[ids].get(mode="fill", fill_value=0).mean(1)


def from_the_end(table: Any, ids: Any) -> Any:
    return table[ids - 5].mean(1)


def train(look_up: Callable[[Any, Any], Any], ids: np.ndarray, y: np.ndarray) -> None:
    one, two = jax.random.split(jax.random.key(1))
    params = {"words": {"table": jax.random.normal(one, (WORDS, 6))}, "out": {"w": 0.3 * jax.random.normal(two, (6, 1))}}

    def loss(p: Any, ids: Any, y: Any) -> Any:
        return jnp.mean((jnp.tanh(look_up(p["words"]["table"], ids)) @ p["out"]["w"] - y[:, None]) ** 2)

    @jax.jit
    def step(p: Any, ids: Any, y: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(p, ids, y)
        return jax.tree.map(lambda w, g: w - 0.05 * g, p, grads), value

    rng = np.random.default_rng(1)
    for _ in range(2):
        for rows in rng.permutation(len(ids)).reshape(-1, 32):
            params, _ = step(params, ids[rows], y[rows])


@pytest.mark.parametrize("look_up", [plainly, sample_by_sample, in_half_precision])
def test_an_id_without_a_row_is_named_with_the_line_that_looks_it_up(look_up: Callable[[Any, Any], Any]) -> None:
    ids, y = sentences(WORDS - 1)
    ids[300, 3] = WORDS  # one in four thousand
    found = looked_back(lambda: train(look_up, ids, y)).culprits[0].finding
    assert found.name == "token-out-of-vocabulary"
    assert found.summary.startswith(f"words.table has {WORDS} rows")
    assert f"the id {WORDS}" in found.summary
    assert found.location is not None
    assert "table" in found.location.text


@pytest.mark.parametrize("look_up", [masked, clipped_on_purpose, unknown_is_zero])
def test_ids_that_are_outside_on_purpose_are_left_alone(look_up: Callable[[Any, Any], Any]) -> None:
    ids, y = sentences(WORDS - 1)
    ids[:, 6:] = PADDING
    report = looked_back(lambda: train(look_up, ids, y))
    assert not [c for c in report.culprits if c.finding.name == "token-out-of-vocabulary"], report.to_text()


def test_ids_that_count_from_the_end_have_their_rows() -> None:
    report = looked_back(lambda: train(from_the_end, *sentences(WORDS - 1)))
    assert not [c for c in report.culprits if c.finding.name == "token-out-of-vocabulary"], report.to_text()
