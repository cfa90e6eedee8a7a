"""Changing the weights on the bench: the user's optax optimiser, a plain rate, or a stand-in."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sleuth.adapters.jax.optimising import Recipe, changed, injected, read, transformation
from sleuth.core.errors import Unsupported

STAND_IN_LR = 1e-3
BETAS, EPSILON = (0.9, 0.999), 1e-8


@dataclass(frozen=True)
class Knobs:
    """What experiments turn; None: as the user has it."""

    lr: float | None = None
    decay: float = 1.0


class Stepper:
    """A pure function of weights, gradients and its own state."""

    def __init__(self, optimiser: Any, params: Any) -> None:
        self._tx = transformation(optimiser)
        self._rate = float(optimiser) if isinstance(optimiser, int | float | np.number) else None
        self._began = params
        self.held: Any = None  # the state, where it is no longer that of the start
        self.knobs = Knobs()
        self.users = self._tx is not None or self._rate is not None

    @property
    def state(self) -> Any:
        if self.held is None:
            self.held = self._init(self._began)
        return self.held

    @state.setter
    def state(self, state: Any) -> None:
        self.held = state

    def _init(self, params: Any) -> Any:
        if self._tx is not None:
            return jax.tree.map(jnp.asarray, self._tx.init(params))
        zeros = jax.tree.map(lambda p: jax.device_put(np.zeros(p.shape, p.dtype)), params)
        return {"mean": zeros, "square": zeros, "count": jax.device_put(np.int32(0))}

    @cached_property
    def recipe(self) -> Recipe:
        if self._tx is not None:
            return read(self._tx, self.state)
        return Recipe(None if self._rate is None else "SGD", self._rate)

    @property
    def lr(self) -> float | None:
        if not self.users:
            return None
        return self.recipe.lr if self.knobs.lr is None else self.knobs.lr

    def set_lr(self, lr: float) -> None:
        if self.users and self.recipe.lr is None:
            raise Unsupported("the learning rate of this optimiser cannot be told: make it with optax.inject_hyperparams")
        self.knobs = replace(self.knobs, lr=lr)

    @property
    def weight_decay(self) -> float | None:
        decay = self.recipe.weight_decay
        return None if decay is None else decay * self.knobs.decay

    def scale_weight_decay(self, factor: float) -> None:
        self.knobs = replace(self.knobs, decay=self.knobs.decay * factor)

    @property
    def plan(self) -> tuple[bool, bool]:
        """Which of the two ways to step is compiled: the user's optimiser untouched, or with its knobs turned."""
        return self.knobs.lr is not None, self.knobs.decay != 1.0

    def inputs(self) -> dict[str, np.float32]:
        known = self.lr if self.knobs.lr is None else self.knobs.lr
        lr = STAND_IN_LR if known is None else known
        return {"lr": np.float32(lr), "decay": np.float32(self.knobs.decay)}

    def function(self) -> Callable[[Any, Any, Any, Any], tuple[Any, Any]]:
        """(weights, gradients, state, knobs) → (weights, state)."""
        return self._stand_in if self._tx is None else self._users

    def _users(self, params: Any, gradients: Any, state: Any, knobs: Any) -> tuple[Any, Any]:
        sets_rate, decays = self.plan
        given = injected(state)
        if given:
            own = {"learning_rate": knobs["lr"] if sets_rate else None}
            own["weight_decay"] = given["weight_decay"] * knobs["decay"] if "weight_decay" in given else None
            fresh = {k: jnp.asarray(v, given[k].dtype) for k, v in own.items() if v is not None and k in given}
            updates, after = self._tx.update(gradients, state._replace(hyperparams={**given, **fresh}), params)
            after = after._replace(hyperparams={**after.hyperparams, **{k: given[k] for k in fresh}})
        else:
            update = self._tx.update
            if sets_rate or decays:
                update = changed(update, knobs["lr"] if sets_rate else None, knobs["decay"])
            updates, after = update(gradients, state, params)
        return jax.tree.map(lambda p, u: (p + u).astype(p.dtype), params, updates), after

    def _stand_in(self, params: Any, gradients: Any, state: Any, knobs: Any) -> tuple[Any, Any]:
        """Adam; plain descent where a rate was given."""
        if self._rate is not None:
            return jax.tree.map(lambda p, g: (p - knobs["lr"] * g).astype(p.dtype), params, gradients), state
        one, two = BETAS
        count = state["count"] + 1
        mean = jax.tree.map(lambda m, g: one * m + (1 - one) * g, state["mean"], gradients)
        square = jax.tree.map(lambda s, g: two * s + (1 - two) * g * g, state["square"], gradients)

        def moved(p: Any, m: Any, s: Any) -> Any:
            m, s = m / (1 - one**count), s / (1 - two**count)
            return (p - knobs["lr"] * m / (jnp.sqrt(s) + EPSILON)).astype(p.dtype)

        return jax.tree.map(moved, params, mean, square), {"mean": mean, "square": square, "count": count}
