"""Weights in a dict or list, and functions beside them: forward, backward, update, or one step that does it all."""

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sleuth.adapters.common.manual_loop.calling import Offers, call, default_of, given, positional, role_of
from sleuth.adapters.numpy.forms.names import by_marked_name, returned_names
from sleuth.core.errors import Unsupported, UnusableInput
from sleuth.core.runtime.tree import leaves, map_arrays

Function = Callable[..., Any]


class ByHand:
    """A network that is written as functions over a dict or list of NumPy arrays.

    `forward(params, x)` returns the output, or the output and what `backward(params, cache, y)` needs; backward gives the
    gradients under the names or in the order of the weights. `update(params, grads, lr)` changes the weights or returns new ones.
    Instead of these, `step(params, x, y)` returns the loss and the gradients, or trains one step and returns the loss.
    Arguments are recognised by their names, in any order; a weight may also be asked for by its own name, such as W1.
    """

    def __init__(
        self,
        params: Any,
        *,
        forward: Function | None = None,
        backward: Function | None = None,
        update: Function | None = None,
        step: Function | None = None,
    ) -> None:
        if not is_weights(params):
            raise UnusableInput(
                f"the weights are a {type(params).__name__}; give a dict or a list of NumPy arrays, such as {{'W1': …, 'b1': …}}."
            )
        if forward is None and step is None:
            raise UnusableInput("weights alone cannot be run: give forward= (and backward=, loss=), or step=.")
        self.params = params
        self.cache: Any = None
        self.moves: bool | None = None  # does `step` change the weights? Known once it has run
        self._forward, self.backward, self._update, self._step = forward, backward, update, step
        rate = next((r for f in (update, step) if f is not None and isinstance(r := default_of(f, "rate"), float | int)), None)
        if rate is not None:
            self.lr = float(rate)

    def __deepcopy__(self, memo: dict[int, Any]) -> "ByHand":
        """Functions that find their weights elsewhere than in their arguments would go on using the originals."""
        loose = next((f for f in (self._forward, self._step) if f is not None and not self._is_given_weights(f)), None)
        if loose is not None:
            raise Unsupported(f"{loose.__name__}() is not given its weights but finds them itself")
        twin = object.__new__(ByHand)
        memo[id(self)] = twin
        twin.__dict__.update({k: copy.deepcopy(v, memo) for k, v in self.__dict__.items()})
        return twin

    def parameters(self) -> list[tuple[str, np.ndarray]]:
        return list(leaves(self.params, is_array))

    def forward(self, x: Any) -> Any:
        if self._forward is None:
            raise Unsupported("no forward= was given")
        returned = call(self._forward, {**self.offers(), "inputs": lambda: x}, ("parameters", "inputs"), self.names())
        output, self.cache = self._taken_apart(returned)
        return output

    @property
    def written(self) -> Function | None:
        """The step as the user wrote it."""
        return self._step

    @property
    def update(self) -> Function | None:
        return None if self._update is None else self._updated

    def _updated(self, grads: Any, lr: float) -> None:
        offers = {**self.offers(), "gradients": lambda: grads, "gradient": lambda: grads, "rate": lambda: lr}
        gradients = {f"{mark}{k}": given(v) for k, v in self.gradients_of(grads).items() for mark in ("d", "grad_")}
        assert self._update is not None
        order = ("parameters", "gradients", "rate")
        self.adopt(call(self._update, offers, order, {**self.names(), **gradients}))

    @property
    def train_step(self) -> Function | None:
        return self._trained if self.moves and self._update is None else None

    def _trained(self, batch: Any, x: Any, y: Any, lr: float) -> Any:
        value, rest = self.run_step({"batch": lambda: batch, "inputs": lambda: x, "target": lambda: y, "rate": lambda: lr})
        self.adopt(rest)
        return value

    def run_step(self, offers: Offers) -> tuple[Any, Any]:
        """(the loss, what else the step returned)."""
        assert self._step is not None
        wants = {role_of(p) for p in positional(self._step) or ()}
        order = ("parameters", "inputs", "target") if wants & {"inputs", "target"} or self._many() else ("parameters", "batch")
        returned = call(self._step, {**self.offers(), **offers}, order, self.names())
        if not isinstance(returned, tuple):
            return returned, None
        number = next((i for i, v in enumerate(returned) if np.ndim(v) == 0 and not isinstance(v, Mapping | list | tuple)), 0)
        rest = [v for i, v in enumerate(returned) if i != number]
        return returned[number], rest[0] if len(rest) == 1 else rest

    def _many(self) -> bool:
        return self._step is not None and len([p for p in positional(self._step) or () if p.default is p.empty]) > 2

    def offers(self) -> dict[str, Callable[[], Any]]:
        return {"parameters": lambda: self.params, "cache": lambda: self.cache, "training": lambda: True}

    def names(self) -> dict[str, Callable[[], Any]]:
        """The user's own names: of the weights, and of what forward kept."""
        kept = self.cache if isinstance(self.cache, Mapping) else {}
        return {k: given(v) for k, v in (*kept.items(), *self.parameters()) if isinstance(k, str)}

    def gradients_of(self, raw: Any) -> dict[str, Any]:
        """By the names of the weights, as far as the gradients have names."""
        return by_marked_name(raw, [name for name, _ in self.parameters()])

    def adopt(self, returned: Any) -> None:
        """New weights that a function returned take the place of the old ones, in the user's own dict or list."""
        tree = returned[0] if isinstance(returned, tuple | list) and not self._fits(returned) and returned else returned
        if not self._fits(tree):
            return
        fresh = iter([array for _, array in leaves(tree, is_array)])
        if isinstance(self.params, dict) and all(map(is_array, self.params.values())) and isinstance(tree, Mapping):
            self.params.update(tree)
        elif isinstance(self.params, dict | list):
            filled = map_arrays(self.params, lambda _: next(fresh), is_array)
            self.params.update(filled) if isinstance(self.params, dict) else self.params.__setitem__(slice(None), filled)
        else:
            self.params = map_arrays(self.params, lambda _: next(fresh), is_array)

    def _fits(self, tree: Any) -> bool:
        if isinstance(tree, Mapping) and isinstance(self.params, Mapping) and set(tree) != set(self.params):
            return False
        theirs = [array.shape for _, array in leaves(tree, is_array)]
        mine = [array.shape for _, array in self.parameters()]
        return bool(theirs) and sorted(theirs) == sorted(mine) and (isinstance(tree, Mapping) or theirs == mine)

    def looks_like_weights(self, tree: Any) -> bool:
        """New weights lie close to the old ones; gradients lie anywhere."""
        if not self._fits(tree):
            return False
        old = np.concatenate([a.ravel() for _, a in self.parameters()])
        new = np.concatenate([a.ravel() for _, a in leaves(tree, is_array)])
        size = float(np.linalg.norm(old) * np.linalg.norm(new))
        return size > 0 and float(old @ new) > 0.9 * size

    def _is_given_weights(self, function: Function) -> bool:
        wanted = positional(function)
        if wanted is None or inspect.ismethod(function) or len([p for p in wanted if p.default is p.empty]) > 1:
            return True
        return any(role_of(p) == "parameters" or p.name in dict(self.parameters()) for p in wanted)

    def _taken_apart(self, returned: Any) -> tuple[Any, Any]:
        """(output, cache). A row of arrays, as in z1, a1, z2, a2, ends with the output unless only the first one fits."""
        if not isinstance(returned, tuple) or not returned:
            return returned, None
        if not all(map(is_array, returned)):
            return returned[0], returned[1] if len(returned) == 2 else returned[1:]
        names = returned_names(self._forward)
        cache = dict(zip(names, returned, strict=True)) if len(names) == len(returned) else returned
        width = self.parameters()[-1][1].shape[-1:]
        fitting = [a for a in returned if a.shape[-1:] == width] or [returned[-1]]
        return fitting[-1], cache


def is_array(thing: Any) -> bool:
    return isinstance(thing, np.ndarray)


def is_weights(thing: Any) -> bool:
    """A tree of NumPy arrays and nothing else."""
    if isinstance(thing, dict):
        return bool(thing) and all(is_array(v) or is_weights(v) for v in thing.values())
    if isinstance(thing, list | tuple):
        return bool(thing) and all(is_array(v) or is_weights(v) for v in thing)
    return False
