"""The weights and gradients of a watched model, wherever its form keeps them."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from sleuth.adapters.common.manual_loop.calling import positional, role_of
from sleuth.adapters.listening.listener import Lost
from sleuth.adapters.numpy.forms.functions import ByHand, is_weights
from sleuth.adapters.numpy.forms.layers import Layers, gradient_of
from sleuth.adapters.numpy.gradients import WrongGradients, by_name
from sleuth.adapters.numpy.model_parts import Parameters
from sleuth.adapters.numpy.stepping import held_arrays
from sleuth.core.errors import Unsupported
from sleuth.core.runtime.tree import leaves

# So many entries of each array are compared to see whether it changed.
PRINTED = 64


class Weights:
    def __init__(self, model: Any, lost: Lost) -> None:
        self._model, self._lost = model, lost
        self.parameters = None if isinstance(model, ByHand) else Parameters(model)
        self._tree: Any = model.params if isinstance(model, ByHand) else None  # those that the loop last used

    def now(self) -> dict[str, np.ndarray]:
        if self.parameters is not None:
            return self.parameters.arrays()
        return dict(leaves(self._tree, lambda a: isinstance(a, np.ndarray)))

    def copied(self) -> dict[str, np.ndarray]:
        return {k: np.array(v) for k, v in self.now().items()}

    def prints(self) -> list[float]:
        return [v for a in self.now().values() for v in a.reshape(-1)[:: max(1, a.size // PRINTED)].tolist()]

    def gradients(self, raw: Any) -> dict[str, np.ndarray | None]:
        """Where they can be told; a backward that keeps them to itself gives none."""
        if isinstance(self._model, Layers):
            return {name: gradient_of(layer, key) for name, layer, key in self._model.held()}
        if raw is not None and not hasattr(raw, "__iter__"):  # the loss, or the like
            return {}
        try:
            return by_name(raw, self.parameters or Parameters(self._model), self._model)
        except (Unsupported, WrongGradients):
            return {}
        except Exception as error:
            self._lost("the gradients of a backward could not be read", error)
            return {}

    def shared_with(self, optimiser: Any) -> tuple[int, int]:
        """(arrays that an optimiser holds, those of them that are the model's)."""
        held = held_arrays(optimiser) or []
        own = {id(a) for a in self.now().values()}
        return len(held), sum(id(a) in own for a in held)

    def used(self, function: Callable[..., Any] | None, args: tuple[Any, ...], options: Mapping[str, Any]) -> None:
        """A function was given its weights: the loop may have made new ones."""
        given = argument(function, args, options, "parameters") if self._tree is not None else None
        if isinstance(given, dict | list | tuple):
            self._tree = given

    def renewed(self, returned: Any) -> None:
        """An update may return new weights."""
        if self._tree is None or returned is None:
            return
        known = self._tree
        candidates = returned if isinstance(returned, tuple) else (returned,)
        self._tree = next((c for c in candidates if type(c) is type(known) and is_weights(c) and len(c) == len(known)), known)


def argument(function: Callable[..., Any] | None, args: tuple[Any, ...], options: Mapping[str, Any], role: str) -> Any:
    """What a function was given in this role, or its default; None where it takes nothing of the kind."""
    found = None if function is None else _places(function).get(role)
    if found is None:
        return None
    place, name, default = found
    return args[place] if place < len(args) else options.get(name, default)


@lru_cache(maxsize=256)
def _places(function: Callable[..., Any]) -> dict[str, tuple[int, str, Any]]:
    """Role → place, name and default. To read a signature takes longer than a small step."""
    found: dict[str, tuple[int, str, Any]] = {}
    for place, parameter in enumerate(positional(function) or ()):
        default = None if parameter.default is parameter.empty else parameter.default
        found.setdefault(role_of(parameter), (place, parameter.name, default))
    return found
