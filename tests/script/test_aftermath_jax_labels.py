"""Classes that nothing in the model stands for: JAX makes an empty row of them, or reads the nearest; `sleuth run` says it."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from sleuth.probes.lab.probe import all_probes
from tests.script.test_aftermath_jax import answers, looked_back, points, weights

CLASSES, FAR = 3, 255
PROBES = [probe for probe in all_probes() if probe.name in ("reading", "describing")]


def one_hot(p: Any, x: Any, y: Any) -> Any:
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(answers(p, x)) * jax.nn.one_hot(y, CLASSES), -1))


def compared(p: Any, x: Any, y: Any) -> Any:
    code = (y[:, None] == jnp.arange(CLASSES)).astype(jnp.float32)
    return optax.softmax_cross_entropy(answers(p, x), code).mean()


def picked(p: Any, x: Any, y: Any) -> Any:
    return -jnp.mean(jax.nn.log_softmax(answers(p, x))[jnp.arange(len(y)), y])


def picked_and_masked(p: Any, x: Any, y: Any) -> Any:
    known = y < CLASSES
    return -jnp.sum(jax.nn.log_softmax(answers(p, x))[jnp.arange(len(y)), y] * known) / known.sum()


def as_a_feature(p: Any, x: Any, y: Any) -> Any:
    """A kind that has no column of its own is all zeros, as any table of kinds would have it."""
    return jnp.mean((answers(p, jnp.concatenate([x[:, :3], jax.nn.one_hot(y, CLASSES)], 1))[:, 0] - x[:, 5]) ** 2)


def labels(low: int, high: int, skipped: int | None = None) -> np.ndarray:
    rng = np.random.default_rng(3)
    found = rng.integers(low, high + 1, 960)
    return np.where(rng.random(960) < 0.5, found if skipped is None else skipped, found).astype(np.int32)


def told(loss: Callable[..., Any], y: np.ndarray) -> list[str]:
    def training() -> None:
        x, params, rng = points()[0], weights(CLASSES), np.random.default_rng(1)

        @jax.jit
        def step(p: Any, x: Any, y: Any) -> Any:
            value, grads = jax.value_and_grad(loss)(p, x, y)
            return jax.tree.map(lambda w, g: w - 0.05 * g, p, grads), value

        for rows in rng.permutation(len(x)).reshape(-1, 32):
            params, _ = step(params, x[rows], y[rows])

    culprits = looked_back(training, PROBES).culprits
    return [c.finding.summary for c in culprits if c.finding.name == "target-out-of-range"]


@pytest.mark.parametrize(
    ("loss", "y"), [(one_hot, labels(1, 3)), (compared, labels(1, 3)), (picked, labels(1, 3)), (one_hot, labels(0, 3))]
)
def test_a_class_that_nothing_stands_for_is_named(loss: Callable[..., Any], y: np.ndarray) -> None:
    (summary,) = told(loss, y)
    assert summary.startswith(f"the target runs from {y.min()} to 3")


@pytest.mark.parametrize(
    ("loss", "y"),
    [
        (one_hot, labels(0, 2)),
        (one_hot, labels(0, 2, skipped=-1)),
        (one_hot, labels(0, 2, skipped=FAR)),
        (picked, labels(0, 2)),
        (picked_and_masked, labels(0, 2, skipped=FAR)),
        (as_a_feature, labels(0, 3)),
    ],
)
def test_samples_that_are_left_out_on_purpose_are_no_mistake(loss: Callable[..., Any], y: np.ndarray) -> None:
    assert told(loss, y) == []
