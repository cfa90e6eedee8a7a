"""What the user's loss function does around its one call of the model, operation by operation: enough to do it again.

Arrays are known by their identity, and the tape keeps them: nothing is computed. What the model does inside is not written down.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import mlx.core as mx
import mlx.nn as nn

from sleuth.adapters.listening.patches import attempt, carries_call, put_back
from sleuth.adapters.mlx.arrays import arrays_in, evaluated, is_array
from sleuth.adapters.mlx.model_parts import parameters
from sleuth.adapters.mlx.operations import places
from sleuth.adapters.mlx.pass_listener import LOSSES, replaced
from sleuth.adapters.mlx.user_line import users_line
from sleuth.adapters.mlx.watching.listeners import lost
from sleuth.core.location import Location
from sleuth.core.runtime.place import done_again
from sleuth.core.runtime.tree import map_arrays

# A loss function of more operations is no longer a formula.
MOST_CALLS = 400
_tell_unread = lost("what the loss is made of could not be written down")


class Slot(NamedTuple):
    """Stands for an array on the tape."""

    number: int


class Recorded(NamedTuple):
    owner: Any
    name: str
    args: Any  # with slots in the place of arrays
    kwargs: Any
    given: tuple[int, ...]
    made: tuple[int, ...]
    location: Location | None


class Tape:
    """`model` is None where there is no such thing, and `begin` tells what is learned and what is fed."""

    def __init__(self, model: nn.Module | None) -> None:
        self.calls: list[Recorded] = []
        self.arrays: dict[int, mx.array] = {}
        self.given: tuple[int, ...] = ()  # to the model
        self.outputs: tuple[int, ...] = ()
        self.answers = 0  # how often the model was called
        self.weights: dict[int, str] = {}
        self.fed: dict[str, int] = {}  # where there is no model: path among the arguments → number
        self.is_readable = True
        self._model = model
        self._inside = 0
        self._known: dict[int, int] = {}  # identity → number: none is given twice while its array lives

    @contextmanager
    def listening(self) -> Iterator[None]:
        undo: list[Callable[[], None]] = []
        try:
            for owner, name in places():
                undo.append(replaced(owner, name, self._function(vars(owner)[name], owner, name)))
            undo.append(replaced(mx.array, "T", property(self._function(mx.transpose, mx, "transpose"))))
            for name in LOSSES:
                if hasattr(nn.losses, name):
                    undo.append(replaced(nn.losses, name, self._function(getattr(nn.losses, name), nn.losses, name)))
            if self._model is not None:
                undo.append(replaced(type(self._model), "__call__", self._call(type(self._model).__call__)))
            yield
        finally:
            put_back(*reversed(undo))

    def begin(self, learned: Mapping[str, mx.array], fed: Mapping[str, Any]) -> None:
        self.weights = {self._number(array): name for name, array in learned.items()}
        self.fed = {path: self._number(array) for path, array in fed.items() if is_array(array)}

    def run(self, known: dict[int, mx.array], wanted: int) -> mx.array:
        """The array of this number, from other values for some."""
        done = dict(known)
        for call in self.behind(wanted, set(known)):

            def fill(slot: Slot) -> mx.array:
                return done[slot.number] if slot.number in done else self.arrays[slot.number]  # noqa: B023

            args, kwargs = map_arrays((call.args, call.kwargs), fill, _is_slot)
            with done_again(call.location):
                made = getattr(call.owner, call.name)(*args, **kwargs)
            done |= dict(zip(call.made, arrays_in(made), strict=True))
        return done[wanted] if wanted in done else self.arrays[wanted]

    def widened(self, known: Mapping[int, Any]) -> dict[int, mx.array]:
        """Its constants, in double precision."""
        constants = {n: a for n, a in self.arrays.items() if n not in known and mx.issubdtype(a.dtype, mx.floating)}
        return {n: a.astype(mx.float64) for n, a in constants.items() if self.maker(n) is None}

    def sources(self, wanted: int, known: set[int]) -> set[int]:
        """Arrays that stand on the tape before anything was done to them, which it takes beside what is known."""
        calls = self.behind(wanted, known)
        made = {number for call in calls for number in call.made}
        used = {number for call in calls for number in call.given} | {wanted}
        return used - made - known

    def forget(self, kept: set[int], *, compiled: bool = False) -> None:
        """Lets go of all arrays but the constants among them, and these. What was only read to be compiled has no values."""
        made = {number for call in self.calls for number in call.made}
        gone = {*made, *self.outputs, *self.weights, *self.given} - kept
        self.arrays = {number: array for number, array in self.arrays.items() if number not in gone}
        if compiled:
            self.arrays = {number: array for number, array in self.arrays.items() if evaluated([array])[0]}

    def maker(self, number: int) -> Recorded | None:
        return next((call for call in self.calls if number in call.made), None)

    def depends(self, on: set[int]) -> set[int]:
        """All that is made of these."""
        found = set(on)
        for call in self.calls:
            if not found.isdisjoint(call.given):
                found.update(call.made)
        return found

    def behind(self, wanted: int, known: set[int]) -> list[Recorded]:
        needed, found = {wanted}, []
        for call in reversed(self.calls):
            if any(number in needed and number not in known for number in call.made):
                found.append(call)
                needed.update(call.given)
        return found[::-1]

    def _call(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        @carries_call
        def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if module is not self._model or self._inside:
                return plain(module, *args, **kwargs)
            self.answers += 1
            if self.answers == 1:
                attempt(self._failed, self._asked, module, args, kwargs)
            self._inside += 1
            try:
                output = plain(module, *args, **kwargs)
            finally:
                self._inside -= 1
            if self.answers == 1:
                attempt(self._failed, self._answered, output)
            return output

        return call

    def _asked(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.given = tuple(self._numbers((args, kwargs)))
        self.weights = {self._number(e.array): e.path for e in parameters(model)}

    def _answered(self, output: Any) -> None:
        self.outputs = tuple(self._numbers(output))

    def _function(self, plain: Callable[..., Any], owner: Any, name: str) -> Callable[..., Any]:
        in_place = name.startswith("__i") and owner is mx.array
        told = name.replace("__i", "__", 1) if in_place else name

        @carries_call
        def call(*args: Any, **kwargs: Any) -> Any:
            if self._inside or not self.is_readable:
                return plain(*args, **kwargs)
            self._inside += 1
            try:
                given = attempt(self._failed, self._taken, args, kwargs)
                output = plain(*args, **kwargs)
                if in_place:  # another array from now on, under the same identity
                    self._known.pop(id(output), None)
                self.is_readable &= name != "__setitem__" and len(self.calls) < MOST_CALLS
                if given is not None:
                    attempt(self._failed, self._record, owner, told, given, output)
                return output
            finally:
                self._inside -= 1

        return call

    def _failed(self, error: Exception) -> None:
        """Something that nobody thought of may go into a call: the user's must not fail for that."""
        self.is_readable = False
        _tell_unread(error)

    def _taken(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, tuple[int, ...]]:
        return self._slotted(args), self._slotted(kwargs), tuple(self._numbers((args, tuple(kwargs.values()))))

    def _record(self, owner: Any, name: str, given: tuple[Any, Any, tuple[int, ...]], output: Any) -> None:
        self.calls.append(Recorded(owner, name, *given, tuple(self._numbers(output)), users_line()))

    def _slotted(self, tree: Any) -> Any:
        return map_arrays(tree, lambda array: Slot(self._number(array)), is_array)

    def _numbers(self, tree: Any) -> Iterator[int]:
        return (self._number(array) for array in arrays_in(tree))

    def _number(self, array: mx.array) -> int:
        number = self._known.setdefault(id(array), len(self.arrays))
        self.arrays[number] = array
        return number


def _is_slot(thing: Any) -> bool:
    return isinstance(thing, Slot)
