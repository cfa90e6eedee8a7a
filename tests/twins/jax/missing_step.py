"""Digits and Adam: the updates are computed, and in one of the loops nobody applies them."""

from typing import Any

import jax
import jax.numpy as jnp
import optax

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, applies=False)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, applies=True)


def _loop(kit: Kit, applies: bool) -> Loop:
    keys = jax.random.split(jax.random.key(0), 2)
    first = {
        "hidden": {"w": jax.random.normal(keys[0], (64, 32)) * 0.18, "b": jnp.zeros(32)},
        "out": {"w": jax.random.normal(keys[1], (32, 10)) * 0.18, "b": jnp.zeros(10)},
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
            if applies:
                params = optax.apply_updates(params, updates)
            return params, state, value

        params, state = first, tx.init(first)
        for _ in range(4):
            for x, y in loader:
                params, state, _ = step(params, state, x, y)

    return Loop(first, [], run)
