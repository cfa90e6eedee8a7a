"""What passes by a training of JAX is kept: after the end it is a model, a loss and batches that can be examined."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from sleuth.adapters import adapter_named
from sleuth.core.contract.kept import Kept

ROWS = 24


def table(steps: int = 6) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(steps, ROWS, 5)).astype(np.float32)
    return [(a, (a[:, 0] > 0).astype(np.int32) + (a[:, 1] > 0.3).astype(np.int32)) for a in x]


def weights() -> dict[str, Any]:
    one, two = jax.random.split(jax.random.key(3))
    return {
        "first": {"w": 0.5 * jax.random.normal(one, (5, 8)), "b": jnp.zeros(8)},
        "last": {"w": 0.5 * jax.random.normal(two, (8, 3)), "b": jnp.zeros(3)},
    }


def answers(p: Any, x: Any) -> Any:
    return jnp.tanh(x @ p["first"]["w"] + p["first"]["b"]) @ p["last"]["w"] + p["last"]["b"]


def by_labels(p: Any, x: Any, y: Any) -> Any:
    return optax.softmax_cross_entropy_with_integer_labels(answers(p, x), y).mean()


def written_out(p: Any, x: Any, y: Any) -> Any:
    chosen = jax.nn.log_softmax(answers(p, x))
    penalty = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(p))
    return -jnp.take_along_axis(chosen, y[:, None], axis=1).mean() + 1e-3 * penalty


def compiled(loss: Any, **jit: Any) -> None:
    tx = optax.adam(1e-2)

    def step(params: Any, state: Any, x: Any, y: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, 2 * x, y)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    fast, params = jax.jit(step, **jit), weights()
    state = tx.init(params)
    for x, y in table():
        params, state, _ = fast(params, state, x, y)


def scanned() -> None:
    tx = optax.sgd(0.1)

    def round(carry: Any, batch: Any) -> Any:
        params, state = carry
        value, grads = jax.value_and_grad(by_labels)(params, 2 * batch[0], batch[1])
        updates, state = tx.update(grads, state, params)
        return (optax.apply_updates(params, updates), state), value

    @jax.jit
    def epoch(params: Any, state: Any, xs: Any, ys: Any) -> Any:
        (params, state), losses = jax.lax.scan(round, (params, state), (xs, ys))
        return params, state, losses

    params = weights()
    state = tx.init(params)
    batches = table()
    for some in (batches[:3], batches[3:]):
        params, state, _ = epoch(params, state, *(jnp.stack(side) for side in zip(*some, strict=True)))


def by_hand(*, compile: bool) -> None:
    def step(params: Any, x: Any, y: Any) -> Any:
        grads = jax.grad(by_labels)(params, 2 * x, y)
        return jax.tree.map(lambda p, g: p - 0.25 * g, params, grads)

    params, step = weights(), jax.jit(step) if compile else step
    for x, y in table():
        params = step(params, jnp.asarray(x), jnp.asarray(y))


class Tower(nnx.Module):
    def __init__(self) -> None:
        rngs = nnx.Rngs(0)
        self.first = nnx.Linear(5, 8, rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        self.drop = nnx.Dropout(0.2, rngs=rngs)
        self.others = nnx.List([nnx.Linear(8, 8, rngs=rngs)])  # it has no hash
        self.last = nnx.Linear(8, 3, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.last(self.drop(jnp.tanh(self.others[0](self.norm(self.first(x))))))


def flax() -> None:
    model = Tower()
    optimiser = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)

    @nnx.jit
    def step(model: Any, optimiser: Any, x: Any, y: Any) -> Any:
        twice = 2 * x

        def loss(model: Any) -> Any:
            return optax.softmax_cross_entropy_with_integer_labels(model(twice), y).mean()

        value, grads = nnx.value_and_grad(loss)(model)
        optimiser.update(model, grads)
        return value

    for x, y in table():
        step(model, optimiser, x, y)


def equinox() -> None:
    model = eqx.nn.MLP(5, 3, 8, 1, key=jax.random.key(0))
    optim = optax.adam(1e-2)

    @eqx.filter_jit
    def step(model: Any, state: Any, x: Any, y: Any) -> Any:
        def loss(model: Any, x: Any, y: Any) -> Any:
            return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(model)(x), y).mean()

        value, grads = eqx.filter_value_and_grad(loss)(model, 2 * x, y)
        updates, state = optim.update(grads, state)
        return eqx.apply_updates(model, updates), state, value

    state = optim.init(eqx.filter(model, eqx.is_array))
    for x, y in table():
        model, state, _ = step(model, state, x, y)


TRAININGS: dict[str, Callable[[], None]] = {
    "compiled": lambda: compiled(by_labels),
    "memory given away": lambda: compiled(by_labels, donate_argnums=(0, 1)),
    "written out": lambda: compiled(written_out),
    "scanned": scanned,
    "by hand": lambda: by_hand(compile=True),
    "by hand, not compiled": lambda: by_hand(compile=False),
    "flax": flax,
    "equinox": equinox,
}


def kept_of(training: Callable[[], None]) -> Kept:
    """As `sleuth run` hears it."""
    from sleuth.core.contract.adapter import Attended, Discovered

    watchings: list[Any] = []
    adapter: Any = adapter_named("jax")

    class Listening(Attended):
        steps = 0

        def end(self) -> None: ...

        def drop(self) -> None: ...

    def begin(found: Discovered) -> Attended:
        watchings.append(adapter.watch(found.model, found.optimisers, every=2, overhead=0.02, keeps=True))
        watchings[-1].open()
        return Listening()

    discovering = adapter.discover(begin)
    discovering.open()
    try:
        training()
    finally:
        discovering.close()
        for watching in watchings:
            watching.close()
    (watching,) = watchings
    kept = watching.take_kept()
    assert (watching.trouble, watching.steps) == (None, 6)
    assert kept is not None, watching.remarks
    return kept


@pytest.mark.parametrize("name", TRAININGS)
def test_the_batches_the_model_and_the_loss_of_a_training_are_kept(name: str) -> None:
    kept = kept_of(TRAININGS[name])
    assert kept.at_start, kept.remarks
    late = name == "memory given away"  # of its first step nothing is left
    batches = table()[1:] if late else table()
    assert len(kept.train) == len(batches)
    for passed, (x, y) in zip(kept.train, batches, strict=True):
        np.testing.assert_allclose(np.ravel(passed.parts.inputs), np.ravel(2 * x), rtol=1e-6)
        assert np.array_equal(passed.parts.target, y)
    apply, params = kept.subject.model
    assert apply(params, kept.train[0].parts.inputs).shape == (ROWS, 3)
    assert (kept.subject.loss is None) == (name == "written out")
    if "by hand" in name:
        assert kept.subject.optimizer == pytest.approx(0.25, rel=1e-3)
    else:
        assert callable(kept.subject.optimizer.update)
