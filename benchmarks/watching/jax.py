"""Trainings of JAX, whose step is compiled."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks.watching.training import Training, Turns


def mlp(sizes: list[int], batch: int) -> Training:
    keys = jax.random.split(jax.random.key(0), len(sizes))
    shapes = zip(keys, sizes, sizes[1:], strict=False)
    start = [(jax.random.normal(k, (a, b)) * np.sqrt(2 / a), jnp.zeros(b)) for k, a, b in shapes]
    tx = optax.adam(1e-3)
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(batch, sizes[0])), jnp.float32)
    y = jnp.asarray(rng.integers(0, sizes[-1], batch))

    def loss(params: Any, x: Any, y: Any) -> Any:
        for w, b in params[:-1]:
            x = jax.nn.relu(x @ w + b)
        scores = x @ params[-1][0] + params[-1][1]
        return optax.softmax_cross_entropy_with_integer_labels(scores, y).mean()

    @jax.jit
    def step(params: Any, state: Any, x: Any, y: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        updates, state = tx.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    def loop(turns: Turns, step: Callable[..., Any] = step) -> None:
        params, state = start, tx.init(start)
        for _ in turns:
            params, state, value = step(params, state, x, y)
            value.block_until_ready()

    def watched(turns: Turns, **options: Any) -> Any:
        import sleuth

        listened = sleuth.watch_step(step, **options)
        loop(turns, listened)
        listened.close()
        return listened.report()

    return Training(loop, watched)


TRAININGS = {
    "MLP 64-64-64-10, batch 64": lambda: mlp([64, 64, 64, 10], 64),
    "MLP 784-512-256-10, batch 128": lambda: mlp([784, 512, 256, 10], 128),
    "MLP of 20 layers of 128, batch 64": lambda: mlp([128] * 20 + [10], 64),
}
