"""Trainings of real digits in JAX, as people write them. Each takes what wraps its step, and returns its weights."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from sklearn.datasets import load_digits

Wrap = Callable[[Any], Any]
Run = Callable[[Wrap], list[np.ndarray]]

WIDTH = 24


def batches(steps: int, size: int = 32) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    x, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    for _ in range(steps):
        rows = rng.integers(0, len(x), size)
        yield (x[rows] / 16).astype(np.float32), y[rows].astype(np.int32)


def cross_entropy(scores: Any, labels: Any) -> Any:
    return optax.softmax_cross_entropy_with_integer_labels(scores, labels).mean()


def parameters(sizes: list[int], gain: float = 2.0) -> dict[str, Any]:
    """Named against the order of the alphabet: the last layer is `a…`."""
    keys = jax.random.split(jax.random.key(0), len(sizes))
    names = [chr(ord("z") - i) for i in range(len(sizes) - 2)] + ["answer"]
    shapes = pairwise(sizes)
    return {
        name: {"w": jax.random.normal(key, shape) * np.sqrt(gain / shape[0]), "b": jnp.zeros(shape[1])}
        for name, key, shape in zip(names, keys, shapes, strict=False)
    }


def forward(params: dict[str, Any], x: Any, activation: Any = jax.nn.relu) -> Any:
    *hidden, last = sorted(params, reverse=True)
    for name in hidden:
        x = activation(x @ params[name]["w"] + params[name]["b"])
    return x @ params[last]["w"] + params[last]["b"]


def plain(wrap: Wrap, steps: int = 200, *, loss: Any = None, params: Any = None, tx: Any = None, **jit: Any) -> list[np.ndarray]:
    params = parameters([64, WIDTH, WIDTH, 10]) if params is None else params
    loss = loss or (lambda p, x, y: cross_entropy(forward(p, x), y))
    tx = tx or optax.adam(1e-3)

    def step(params: Any, state: Any, x: Any, y: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        updates, state = tx.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    step, state = wrap(jax.jit(step, **jit)), tx.init(params)
    for x, y in batches(steps):
        params, state, _ = step(params, state, x, y)
    return [np.asarray(leaf) for leaf in jax.tree.leaves(params)]


def by_hand(wrap: Wrap, steps: int = 40, compile: bool = True) -> list[np.ndarray]:
    """`grad` alone is compiled, and the weights are written outside."""
    gradient = jax.grad(lambda p, x, y: cross_entropy(forward(p, x), y))
    gradient, params = wrap(jax.jit(gradient) if compile else gradient), parameters([64, WIDTH, WIDTH, 10])
    for x, y in batches(steps):
        params = jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient(params, x, y))
    return [np.asarray(leaf) for leaf in jax.tree.leaves(params)]


class Net(nnx.Module):
    def __init__(self) -> None:
        rngs = nnx.Rngs(0)
        self.zeroth = nnx.Linear(64, WIDTH, rngs=rngs)
        self.norm = nnx.BatchNorm(WIDTH, rngs=rngs)
        self.drop = nnx.Dropout(0.1, rngs=rngs)
        self.answer = nnx.Linear(WIDTH, 10, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.answer(self.drop(nnx.relu(self.norm(self.zeroth(x)))))


def flax(wrap: Wrap, steps: int = 200) -> list[np.ndarray]:
    model = Net()
    optimiser = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)

    @nnx.jit
    def step(model: Any, optimiser: Any, x: Any, y: Any) -> Any:
        value, gradients = nnx.value_and_grad(lambda m: cross_entropy(m(x), y))(model)
        optimiser.update(model, gradients)
        return value

    step = wrap(step)
    for x, y in batches(steps):
        step(model, optimiser, x, y)
    return [np.asarray(leaf) for leaf in jax.tree.leaves(nnx.state(model, nnx.Param))]


def equinox(wrap: Wrap, steps: int = 200) -> list[np.ndarray]:
    model, tx = eqx.nn.MLP(64, 10, WIDTH, 2, key=jax.random.key(0)), optax.adam(1e-3)
    state = tx.init(eqx.filter(model, eqx.is_array))

    @eqx.filter_jit
    def step(model: Any, state: Any, x: Any, y: Any) -> Any:
        value, gradients = eqx.filter_value_and_grad(lambda m: cross_entropy(jax.vmap(m)(x), y))(model)
        updates, state = tx.update(gradients, state, model)
        return eqx.apply_updates(model, updates), state, value

    step = wrap(step)
    for x, y in batches(steps):
        model, state, _ = step(model, state, x, y)
    return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_array))]
