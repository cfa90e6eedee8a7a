"""Which arguments of a loss function are the inputs and which is the target, where no model is called that could tell: an input
meets the weights themselves, a target only what was made of both. And the same of a step that MLX compiles, as it is read.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import wraps
from typing import Any

import mlx.core as mx

from sleuth.adapters.listening.patches import attempt
from sleuth.adapters.mlx.arrays import first_array
from sleuth.adapters.mlx.trees.tree import named, tree_of
from sleuth.adapters.mlx.watching.batches import arrays_by_path
from sleuth.adapters.mlx.watching.listeners import lose_reading
from sleuth.adapters.mlx.watching.tape import Tape


@dataclass(frozen=True)
class Roles:
    """Paths among the arguments."""

    inputs: tuple[str, ...]
    target: str | None


def roles_of(tape: Tape) -> Roles | None:
    """None where it cannot be told."""
    if not tape.is_readable or not tape.weights or not tape.fed:
        return None
    learned = tape.depends(set(tape.weights))
    pure = learned - tape.depends(set(tape.fed.values()))
    inputs = tuple(path for path, number in tape.fed.items() if _meets(tape, number, learned, pure))
    targets = [path for path, number in tape.fed.items() if path not in inputs and _meets(tape, number, learned, learned)]
    if not inputs or (len(inputs) > 1 and not targets):
        return None
    return Roles(inputs, targets[0] if len(targets) == 1 else None)


def _meets(tape: Tape, number: int, learned: set[int], others: set[int]) -> bool:
    """Does something that is made of this array alone go into an operation together with one of these?"""
    own = tape.depends({number}) - learned
    return any(not own.isdisjoint(call.given) and not others.isdisjoint(call.given) for call in tape.calls)


class Reading:
    """Of a step that MLX compiles. Inside, arrays are known by identity; outside, by their path among arguments and results.

    `weights`: name → path among the arguments; empty until a gradient by a tree was met."""

    def __init__(self) -> None:
        self.weights: dict[str, str] = {}
        self.roles: Roles | None = None
        self.loss: str | None = None  # its path in what is returned
        self.code: Any = None  # of the function that the gradient is taken of
        self.tape: Tape | None = None  # of that function, and what its arguments are to it
        self.own_roles: Roles | None = None
        self.asked: dict[int, tuple[str, ...]] = {}  # model that is called in it → paths of its inputs
        self._given: dict[int, str] = {}
        self._value: mx.array | None = None

    def around(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        """MLX calls it when it reads it, and not when it runs what it has compiled."""

        @wraps(fun)
        def read(*args: Any, **kwargs: Any) -> Any:
            attempt(lose_reading, self._begins, args, kwargs)
            try:
                result = fun(*args, **kwargs)
                attempt(lose_reading, self._returned, result)
                return result
            finally:
                self._given, self._value = {}, None

        return read

    def _begins(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._given, self._value = {id(array): path for path, array in arrays_by_path((args, kwargs))}, None

    def _returned(self, result: Any) -> None:
        if self._value is not None:
            self.loss = next((path for path, array in arrays_by_path(result) if array is self._value), None)

    def call(self, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Of a model, while MLX reads: outside of a gradient it is only asked."""
        paths = tuple(self._given.get(id(array), "") for _, array in arrays_by_path((args, kwargs)))
        if paths and all(paths) and not kwargs:
            self.asked[id(model)] = paths

    def gradient_begins(
        self, taken: Any, args: tuple[Any, ...], kwargs: dict[str, Any], listening: ExitStack
    ) -> Callable[[Any], None] | None:
        """Writes down what it is taken of; what it returns is to be given the value."""
        weights = taken.learned(args)
        paths = {name: self._given.get(id(array), "") for name, array in named(weights).items()}
        if self._value is not None or not all(paths.values()) or tree_of(weights) is None:
            return None
        tape = Tape(None)
        listening.enter_context(tape.listening())
        listening.enter_context(taken.entering(tape.begin))

        def learn(value: Any) -> None:
            outside = {path: self._given.get(id(array)) for path, array in arrays_by_path((taken.fed(args), kwargs))}
            self.weights, self.code, self._value = paths, taken.code, first_array(value)
            self.tape, self.own_roles = tape, roles_of(tape)
            self.roles = _renamed(self.own_roles, outside)

        return learn


def _renamed(roles: Roles | None, outside: dict[str, str | None]) -> Roles | None:
    """As the compiled function is given them."""
    if roles is None or not all(outside.get(path) for path in roles.inputs):
        return None
    return Roles(tuple(outside[path] or "" for path in roles.inputs), outside.get(roles.target or ""))
