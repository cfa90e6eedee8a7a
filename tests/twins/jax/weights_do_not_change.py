"""Weights that were saved at the start are loaded once, before the loop, or again before every step."""

from itertools import islice, repeat
from typing import Any

import jax
import optax

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, again=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, again=False)


def _loop(kit: Kit, again: bool) -> Loop:
    keys = jax.random.split(jax.random.key(0), 2)
    first = {
        "hidden": {"w": jax.random.normal(keys[0], (64, 64)) * 0.18, "b": jax.numpy.zeros(64)},
        "out": {"w": jax.random.normal(keys[1], (64, 10)) * 0.12, "b": jax.numpy.zeros(10)},
    }
    tx, loader = optax.adam(3e-3), kit.loader(*digits())

    def loss(params, x, y):
        hidden = jax.nn.relu(x @ params["hidden"]["w"] + params["hidden"]["b"])
        scores = hidden @ params["out"]["w"] + params["out"]["b"]
        return optax.softmax_cross_entropy_with_integer_labels(scores, y).mean()

    def run(w: Any) -> None:
        @jax.jit
        def step(params, state, x, y):
            value, gradients = jax.value_and_grad(loss)(params, x, y)
            updates, state = tx.update(gradients, state, params)
            return optax.apply_updates(params, updates), state, value

        saved = jax.device_get(first)
        params, state = jax.device_put(saved), tx.init(first)
        for x, y in islice((batch for epoch in repeat(loader) for batch in epoch), 400):
            if again:
                params = jax.device_put(saved)
            params, state, _ = step(params, state, x, y)

    return Loop(first, [], run, {"every": 10})
