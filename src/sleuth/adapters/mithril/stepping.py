"""Changing parameters as the user's optimiser does: dicts in, dicts out."""

import copy
import inspect
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from sleuth.adapters.common.manual_loop.learning_rate import STAND_IN_RATE, Rate, find_decay, find_rate, is_number
from sleuth.adapters.mithril import arrays
from sleuth.core.errors import Unsupported

METHODS = ("update_params", "step", "update")


class Stepper:
    """Understands a rate; `init(backend, params)` with `update_params(params, grads, state)`, as in Mithril's examples; optax;
    and `step(params, grads)` or `update(params, grads)`."""

    def __init__(self, optimiser: Any, backend: Any, params: Mapping[str, Any]) -> None:
        self.optimiser = optimiser
        self.rate = find_rate(None, optimiser)
        self.decay = find_decay(optimiser)
        self._own = Rate(SimpleNamespace(lr=STAND_IN_RATE), "lr")
        self._plain = optimiser is None or is_number(optimiser)
        self.state = None if self._plain else _begun(optimiser, backend, params)
        self._method = next((m for n in METHODS if callable(m := getattr(optimiser, n, None))), None)
        self._stateful = self._method is not None and len(inspect.signature(self._method).parameters) > 2

    def apply(self, params: dict[str, Any], gradients: Mapping[str, Any]) -> dict[str, Any]:
        """The new parameters. What is given may be changed."""
        if self._plain:
            return _descended(params, gradients, (self.rate or self._own).get())
        known = {key: gradient for key, gradient in gradients.items() if gradient is not None}
        if self._method is None:
            raise Unsupported(
                f"a {type(self.optimiser).__name__} is no optimiser that is known: give a rate, an object with "
                "update_params(params, gradients, state), or one of optax"
            )
        if hasattr(self.optimiser, "init") and not hasattr(self.optimiser, "update_params"):
            updates, self.state = self._method(known, self.state, params)
            return {**params, **{key: params[key] + update for key, update in updates.items()}}
        return self._taken(params, self._method(params, known, self.state) if self._stateful else self._method(params, known))

    def _taken(self, params: dict[str, Any], returned: Any) -> dict[str, Any]:
        if isinstance(returned, tuple) and len(returned) == 2:
            returned, self.state = returned
        return params if returned is None else {**params, **returned}

    def set_rate(self, value: float) -> None:
        if self.rate is None and not self._plain:
            raise Unsupported("the optimiser keeps its learning rate to itself: give it an attribute lr")
        (self.rate or self._own).set(value)

    def keep(self) -> Any:
        held = getattr(self.optimiser, "__dict__", None)
        rates = tuple(None if r is None else r.get() for r in (self.rate, self.decay, self._own))
        return copy.deepcopy((held, self.state)), rates

    def put_back(self, kept: Any) -> None:
        (held, self.state), rates = copy.deepcopy(kept)
        if held is not None:
            self.optimiser.__dict__.clear()
            self.optimiser.__dict__.update(held)
        for rate, value in zip((self.rate, self.decay, self._own), rates, strict=True):
            if rate is not None and value is not None:
                rate.set(value)


def _begun(optimiser: Any, backend: Any, params: Mapping[str, Any]) -> Any:
    start = getattr(optimiser, "init", None)
    if not callable(start):
        return None
    given = dict(params)
    return start(backend, given) if len(inspect.signature(start).parameters) > 1 else start(given)


def _descended(params: Mapping[str, Any], gradients: Mapping[str, Any], rate: float) -> dict[str, Any]:
    moved = dict(params)
    for key, gradient in gradients.items():
        if gradient is not None:
            values = arrays.values(params[key])
            moved[key] = arrays.like(values - np.asarray(rate, values.dtype) * arrays.values(gradient), params[key])
    return moved
